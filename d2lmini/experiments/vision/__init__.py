"""Experiments on images: networks that classify them, images as texts, images and their captions.

What they share:

    classification.py  one recipe of training for every network, and what is written down of it
"""
