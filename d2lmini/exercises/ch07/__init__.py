"""Exercises of chapter 07."""
