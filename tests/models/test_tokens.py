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
    with pytest.raises(ValueError, match=r"tokens are torch.uint8 .*, expected integers .* int32 or int64"):
        embedded(embedding, tokens.byte())
    with pytest.raises(TypeError, match=r"tokens are a list, expected a tensor of integers \(B, T\)"):
        embedded(embedding, [[1, 2]])


def test_prompts_of_several_lengths():
    prompts = [[3, 4, 5], [6], [7, 8]]
    tokens, lengths = padded(prompts, 9, "cpu")
    assert tokens.tolist() == [[3, 4, 5], [6, 9, 9], [7, 8, 9]] and lengths.tolist() == [3, 1, 2]
    tokens, lengths = padded(prompts, 9, "cpu", side="left")
    assert tokens.tolist() == [[3, 4, 5], [9, 9, 6], [9, 7, 8]] and lengths.tolist() == [3, 1, 2]
    for alike in ([[1, 2], [3, 4]], torch.tensor([[1, 2], [3, 4]])):
        tokens, lengths = padded(alike, 9, "cpu")
        assert tokens.tolist() == [[1, 2], [3, 4]] and lengths is None
    assert padded([torch.tensor([3, 4]), [5]], 9, "cpu")[0].tolist() == [[3, 4], [5, 9]]
    for empty in ([], [[]], [[1], []], torch.empty(0, 2, dtype=torch.long), torch.empty(2, 0, dtype=torch.long)):
        with pytest.raises(ValueError, match="a prompt is empty"):
            padded(empty, 9, "cpu")


def test_what_is_no_prompt():
    with pytest.raises(
        ValueError, match=r"prompts have shape \(3,\), expected \(B, n\): one prompt alone is \[prompt\]"
    ):
        padded(torch.tensor([1, 2, 3]), 9, "cpu")
    for wrong in ([1, 2, 3], "abc", ["abc"], [b"ab"], [torch.tensor(1)], 5):
        with pytest.raises(TypeError, match=r"expected token ids, a list of lists .* one prompt alone is \[prompt\]"):
            padded(wrong, 9, "cpu")
    for wrong in ([[1.9, 2.7]], [[1], [2.0]], [["a"]], [[True, 1]], [torch.tensor([True])], [torch.tensor([1.0])]):
        with pytest.raises(TypeError, match=r"an id is a .*, expected an integer"):
            padded(wrong, 9, "cpu")
    with pytest.raises(TypeError, match=r"prompts are torch.float32, expected integers"):
        padded(torch.tensor([[1.9]]), 9, "cpu")
