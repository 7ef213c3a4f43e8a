"""Experiments on tokens: words, pieces and bytes."""
