"""Exercises of chapter 19."""
