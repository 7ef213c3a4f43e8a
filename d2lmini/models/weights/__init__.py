"""Models with weights, by name: those that the book's runs trained, and what is published as data.

trained.py       models that the runs of this book trained, exported to files beside this one
files.py         such a file: what it holds, how it is written, read and verified
rounding.py      weights in fewer bits
tokenizers.py    tokenizers in such a file, and exactly what each kind of them does
minilm.py        all-MiniLM-L6-v2, a BERT of six layers that gives sentences of like meaning like vectors
smollm2.py       SmolLM2-135M-Instruct, a language model of 30 blocks
model_pieces.py  the same in pieces, for the page
"""
