"""Experiments on translation: recurrent networks and Transformers from one language to another.

What they share:

    translators.py  data by name, one training, scores and samples
"""
