"""Experiments on scaling: how the loss falls with size, data and compute.

What they share:

    power_laws.py  fits with intervals, optima, predictions
"""
