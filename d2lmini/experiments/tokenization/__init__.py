"""Experiments on tokens: words, pieces and bytes.

The experiments:

    tokenizer_comparison.py  byte-pair encoding, WordPiece and unigram with vocabularies of one size
"""
