"""Exercises of chapter 17."""
