"""Ids on their way back to text: what is no integer, or no token, is refused by every tokenizer."""

import pytest
import torch

from d2lmini.tokenization import BPETokenizer, SubwordTokenizer
from d2lmini.tokenization.bpe import BytePairEncoding
from d2lmini.tokenization.characters import CharacterTokenizer
from d2lmini.tokenization.ids import checked_ids

TEXTS = ["the cat sees the dog", "a dog sees a cat"] * 20
TOKENIZERS = {
    "by hand": lambda: BytePairEncoding.train(TEXTS, 5),
    "fast": lambda: BPETokenizer.train(TEXTS, 300),
    "pieces": lambda: SubwordTokenizer.train("bpe", TEXTS, 300),
    "characters": lambda: CharacterTokenizer(TEXTS[0]),
}


def test_integers_of_any_kind():
    assert checked_ids([0, torch.tensor(2)], 3) == checked_ids(torch.tensor([0, 2]), 3) == [0, 2]
    with pytest.raises(ValueError, match="id 3 is outside the vocabulary of 3 characters"):
        checked_ids([3], 3, "characters")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_number_that_is_no_integer_is_no_id(name):
    tokenizer = TOKENIZERS[name]()
    assert tokenizer.decode([5]) == tokenizer.decode(torch.tensor([5]))
    for wrong in ([5.7], [5.0], torch.tensor([5.7]), ["5"]):
        with pytest.raises(TypeError, match=r"an id is a .*, expected an integer"):
            tokenizer.decode(wrong)
    for wrong in (-1, len(tokenizer)):
        with pytest.raises(ValueError, match=f"id {wrong} is outside the vocabulary of {len(tokenizer)}"):
            tokenizer.decode([wrong])
