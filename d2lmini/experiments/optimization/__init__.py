"""Experiments on training itself: depth, learning rates, optimizers.

The experiments:

    depth_by_rate.py  at which depths and learning rates each recipe trains
    optimizers.py     Adam, SGD, AdamW and Muon, each at its best learning rate

What they share:

    deep_gpts.py      one recipe or another: it learns, is stuck, or diverges
"""
