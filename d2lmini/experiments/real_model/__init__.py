"""Experiments with a real language model: what its weights cost, how it is adapted, and how it writes faster.

The experiments:

    adapters.py      a classifier of reviews: the prompt alone, low-rank changes, the whole model, other weights
    quantised.py     weights in 8 and 4 bits: bytes, losses, seconds
    real_answers.py  what it answers, and where its heads look
    speculative.py   drafts from the text, from the first blocks, from fewer bits

What they share:

    bases.py         the model of a preset, with its tokenizer, and the processor's time
    opened.py        inside a model: its heads, its cache without a position, what each block would say
"""
