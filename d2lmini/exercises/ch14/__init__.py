"""Exercises of chapter 14."""
