"""Exercises of chapter 10."""
