"""Experiments on training itself: depth, learning rates, optimizers.

What they share:

    deep_gpts.py  one recipe or another: it learns, is stuck, or diverges
"""
