"""Experiments on scaling: how the loss falls with size, data and compute.

The experiments:

    scaling.py     small GPTs by size, data and compute, and a larger one predicted

What they share:

    power_laws.py  fits with intervals, optima, predictions
"""
