"""Experiments around a real language model: what its parts and its training after pretraining are worth.

The experiments:

    verifiable.py        rewards that a program can check, next to right answers to imitate

What they share:

    checked_answers.py   groups of answers of a model that sums, checked, and what they cost
"""
