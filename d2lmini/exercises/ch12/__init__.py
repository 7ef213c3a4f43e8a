"""Exercises of chapter 12."""
