"""What every objective refuses, and what it then says."""

import pytest
import torch

from d2lmini.objectives.checks import (
    check_generator,
    check_id,
    check_positive,
    check_share,
    check_tokens,
    valid_tokens,
)

ids = torch.tensor([[1, 2, 3], [4, 5, 0]])


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ([[1, 2]], TypeError, r"tokens is a list, expected an integer tensor \(B, T\)"),
        (ids.float(), TypeError, "dtype torch.float32, expected integers"),
        (ids > 2, TypeError, "dtype torch.bool, expected integers"),
        (ids[0], ValueError, r"shape \(3,\), expected \(B, T\)"),
        (ids[None], ValueError, r"shape \(1, 2, 3\)"),
        (ids[:0], ValueError, "there is no token"),
        (ids[:, :0], ValueError, "there is no token"),
        (ids - 1, ValueError, "holds -1, expected ids from 0 on"),
        (ids + 1, ValueError, "holds the id 6, expected 0 to 5: do they come from another tokenizer"),
    ],
)
def test_what_is_no_batch_of_ids(tokens, error, message):
    with pytest.raises(error, match=message):
        check_tokens(tokens, 6)


def test_what_is_a_batch_of_ids():
    for dtype in (torch.int64, torch.int32, torch.uint8):
        check_tokens(ids.to(dtype), 6)
    check_tokens(ids + 100)


@pytest.mark.parametrize("value", [-1, 1.0, True, None, "<mask>"])
def test_what_is_no_id(value):
    with pytest.raises(ValueError, match=r"mask_id is .*, expected an integer, at least 0: the id of a token"):
        check_id("mask_id", value)


def test_an_id_outside_of_the_vocabulary():
    check_id("eos", 5, 6)
    with pytest.raises(ValueError, match="eos is 6, expected an integer from 0 to 5: the id of a token"):
        check_id("eos", 6, 6)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_what_is_no_share(value):
    check_share("rate", 0)
    check_share("rate", 1, above_zero=True)
    with pytest.raises(ValueError, match=r"rate is .*, expected a number from 0 to 1: a share"):
        check_share("rate", value)
    with pytest.raises(ValueError, match="rate is 0, expected a number above 0, up to 1: a share"):
        check_share("rate", 0, above_zero=True)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_what_is_not_positive(value):
    check_positive("temperature", 0.1)
    with pytest.raises(ValueError, match=r"temperature is .*, expected a number above 0, and finite"):
        check_positive("temperature", value)


def test_what_is_no_generator():
    check_generator(torch.Generator())
    with pytest.raises(TypeError, match=r"generator is a NoneType, expected torch\.Generator"):
        check_generator(None)
    with pytest.raises(TypeError, match="generator is a int"):
        check_generator(0)


def test_which_tokens_are_no_padding():
    assert valid_tokens((2, 3), None).all()
    assert valid_tokens((2, 3), torch.tensor([3, 1])).tolist() == [[True] * 3, [True, False, False]]
    with pytest.raises(ValueError, match=r"valid_lens has shape \(1,\), expected \(2,\): a length a row"):
        valid_tokens((2, 3), torch.tensor([3]))
    with pytest.raises(ValueError, match=r"expected \(2,\)"):
        valid_tokens((2, 3), torch.tensor([[3, 3, 3], [1, 1, 1]]))
    with pytest.raises(ValueError, match="valid_lens holds 4"):
        valid_tokens((2, 3), torch.tensor([4, 1]))
    with pytest.raises(TypeError, match="valid_lens is a list"):
        valid_tokens((2, 3), [3, 1])
