"""Exercises of chapter 11."""
