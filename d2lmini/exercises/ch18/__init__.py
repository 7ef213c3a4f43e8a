"""Exercises of chapter 18."""
