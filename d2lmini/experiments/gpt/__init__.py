"""Experiments on GPTs that write: characters, novels, long texts.

The experiments:

    gpt_ablations.py    which of today's parts brings how much
    gpt_book.py         a GPT on this book's own prose
    gpt_gutenberg.py    GPTs on novels, by vocabulary and by way of decoding
    gpt_shakespeare.py  GPTs on Shakespeare's plays, by characters
    long_context.py     texts longer than those of training
    long_recall.py      the same, where what was said long ago is worth knowing

What they share:

    language.py         a text as tokens, a recipe, training, losses
    characters.py       GPTs on characters
    decodings.py        what a way of decoding does to the text
    long_positions.py   positions that go on past the trained length
"""
