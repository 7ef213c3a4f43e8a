"""Characters to ids and back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from d2lmini.tokenization.characters import CharacterTokenizer


@given(st.text(min_size=1))
def test_round_trip_of_any_text(text):
    tokenizer = CharacterTokenizer(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(torch.tensor(tokenizer.encode(text))) == text
    assert sorted(tokenizer.encode("".join(sorted(set(text))))) == list(range(len(tokenizer)))


def test_bad_input():
    tokenizer = CharacterTokenizer("hello")
    assert tokenizer.to_tokens([0, 3]) == ["e", "o"] and tokenizer.encode("") == [] and tokenizer.decode([]) == ""
    with pytest.raises(ValueError, match=r"'\\ud800', 'x'|'x', '\\ud800'; the first stands at 1"):
        tokenizer.encode("hx\ud800e")
    for ids in ([4], [-1]):
        with pytest.raises(ValueError, match="outside the vocabulary of 4"):
            tokenizer.decode(ids)
    with pytest.raises(ValueError, match="no text"):
        CharacterTokenizer("")
