"""Arguments that are numbers or ids: what is taken, and what every tokenizer refuses on the way back to text."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from d2lmini.arguments import check_integer, check_number, checked_ids
from d2lmini.tokenization import BPETokenizer, SubwordTokenizer
from d2lmini.tokenization.bpe import BytePairEncoding
from d2lmini.tokenization.characters import CharacterTokenizer

TEXTS = ["the cat sees the dog", "a dog sees a cat"] * 20
TOKENIZERS = {
    "by hand": lambda: BytePairEncoding.train(TEXTS, 5),
    "fast": lambda: BPETokenizer.train(TEXTS, 300),
    "pieces": lambda: SubwordTokenizer.train("bpe", TEXTS, 300),
    "characters": lambda: CharacterTokenizer(TEXTS[0]),
}


NO_NUMBERS = [True, np.True_, torch.tensor(True), "1", b"1", None, [1], torch.tensor([1, 2]), 1j, float("nan")]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number(value):
    for check in (check_integer, check_number):
        with pytest.raises(ValueError, match=r"k is .*, expected a"):
            check("k", value, 0)


def test_numbers_of_any_kind():
    for value in (3, np.int64(3), np.uint8(3), torch.tensor(3)):
        assert check_integer("k", value, 3, 3) == 3 and type(check_integer("k", value)) is int
    for value in (0.5, np.float32(0.5), np.float64(0.5), torch.tensor(0.5), Fraction(1, 2)):
        assert check_number("p", value, 0, 1) == 0.5 and type(check_number("p", value)) is float
        with pytest.raises(ValueError, match=r"k is .*, expected an integer from 0 to 3: of which\?"):
            check_integer("k", value, 0, 3, why=": of which?")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_integer("k", 0, 1), "k is 0, expected an integer, at least 1"),
        (lambda: check_integer("k", 4, 1, 3), "k is 4, expected an integer from 1 to 3"),
        (lambda: check_integer("k", 2.0), "k is 2.0, expected an integer"),
        (lambda: check_number("p", -1), "p is -1, expected a number 0 or more, and finite"),
        (lambda: check_number("p", float("inf")), "p is inf, expected a number 0 or more, and finite"),
        (lambda: check_number("p", 10**400), "p is 10*, expected a number 0 or more, and finite"),
        (lambda: check_number("p", 0, above=True), "p is 0, expected a number above 0, and finite"),
        (lambda: check_number("p", 0, 0, 1, above=True), "p is 0, expected a number above 0, up to 1"),
        (lambda: check_number("p", 1.5, 0, 1), "p is 1.5, expected a number from 0 to 1"),
    ],
)
def test_what_is_out_of_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_integers_of_any_kind():
    assert checked_ids([0, torch.tensor(2)], 3) == checked_ids(torch.tensor([0, 2]), 3) == [0, 2]
    with pytest.raises(ValueError, match="id 3 is outside the vocabulary of 3 characters"):
        checked_ids([3], 3, "characters")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_number_that_is_no_integer_is_no_id(name):
    tokenizer = TOKENIZERS[name]()
    assert tokenizer.decode([5]) == tokenizer.decode(torch.tensor([5]))
    for wrong in (
        [5.7],
        [5.0],
        torch.tensor([5.7]),
        ["5"],
        [True],
        torch.tensor([True]),
        "5",
        b"5",
        5,
        torch.tensor([[5]]),
    ):
        with pytest.raises(TypeError, match=r"(an id is|ids are) .*, expected"):
            tokenizer.decode(wrong)
    for wrong in (-1, len(tokenizer)):
        with pytest.raises(ValueError, match=f"id {wrong} is outside the vocabulary of {len(tokenizer)}"):
            tokenizer.decode([wrong])
