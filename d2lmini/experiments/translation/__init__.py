"""Experiments on translation: recurrent networks and Transformers from one language to another.

The experiments:

    translation_bahdanau.py     the recurrent translator, with attention and without
    translation_d2l.py          D2L's protocol, and what two faults of its decoder do
    translation_transformer.py  the Transformer
    translation_width.py        what a wider state does for one context vector

What they share:

    translators.py              data by name, one training, scores and samples
"""
