"""Experiments on GPTs that write: characters, novels, long texts.

What they share:

    language.py        a text as tokens, a recipe, training, losses
    characters.py      GPTs on characters
    decodings.py       what a way of decoding does to the text
    long_positions.py  positions that go on past the trained length
"""
