"""Experiments on a layer of attention: what it can look up, what its heads and positions do, what it costs.

What they share:

    image_features.py  images as vectors that are not learned
"""
