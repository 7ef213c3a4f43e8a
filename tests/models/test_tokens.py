"""Tokens before a model: what is embedded and what is refused; prompts of several lengths."""

import pytest
import torch
from torch import nn

from d2lmini.models.tokens import embedded, padded


def test_what_is_embedded():
    embedding, tokens = nn.Embedding(7, 3), torch.tensor([[0, 6], [2, 2]])
    assert torch.equal(embedded(embedding, tokens), embedding.weight[tokens])
    for wrong in (tokens + 1, tokens - 1):
        with pytest.raises(ValueError, match=r"tokens are .* expected 0 to 6: were they encoded with the vocabulary"):
            embedded(embedding, wrong)
    for wrong in (tokens[0], tokens.float(), tokens > 1):
        with pytest.raises(ValueError, match=r"expected integers \(B, T\)"):
            embedded(embedding, wrong)


def test_prompts_of_several_lengths():
    prompts = [[3, 4, 5], [6], [7, 8]]
    tokens, lengths = padded(prompts, 9, "cpu")
    assert tokens.tolist() == [[3, 4, 5], [6, 9, 9], [7, 8, 9]] and lengths.tolist() == [3, 1, 2]
    tokens, lengths = padded(prompts, 9, "cpu", side="left")
    assert tokens.tolist() == [[3, 4, 5], [9, 9, 6], [9, 7, 8]] and lengths.tolist() == [3, 1, 2]
    for alike in ([[1, 2], [3, 4]], torch.tensor([[1, 2], [3, 4]])):
        tokens, lengths = padded(alike, 9, "cpu")
        assert tokens.tolist() == [[1, 2], [3, 4]] and lengths is None
    for empty in ([], [[]], [[1], []], torch.empty(0, 2, dtype=torch.long)[None], torch.tensor([1, 2])):
        with pytest.raises(ValueError, match="a prompt is empty"):
            padded(empty, 9, "cpu")
