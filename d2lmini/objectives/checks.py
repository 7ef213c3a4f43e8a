"""What the objectives ask of ids, lengths, shares and generators."""

import torch

from ..arguments import check_integer, check_number
from ..masks import padding_mask


def check_tokens(tokens, vocab_size=None):
    """Refuses what is not a batch of ids.

    Args:
        tokens: integers (B, T), neither of them 0.
        vocab_size: V; None: ids only have to be 0 or more.

    Raises:
        TypeError: ``tokens`` is not an integer tensor.
        ValueError: it does not have two dimensions, is empty, or holds an id outside of the vocabulary.
    """
    if not isinstance(tokens, torch.Tensor):
        raise TypeError(f"tokens is a {type(tokens).__name__}, expected an integer tensor (B, T): torch.tensor([...])")
    if tokens.dtype == torch.bool or tokens.is_floating_point() or tokens.is_complex():
        raise TypeError(f"tokens has dtype {tokens.dtype}, expected integers: they are ids of a vocabulary")
    if tokens.dim() != 2:
        raise ValueError(f"tokens has shape {tuple(tokens.shape)}, expected (B, T): one sequence is tokens[None]")
    if not tokens.numel():
        raise ValueError(f"tokens has shape {tuple(tokens.shape)}: there is no token")
    low, high = map(int, torch.aminmax(tokens))
    if low < 0:
        raise ValueError(f"tokens holds {low}, expected ids from 0 on: were labels passed, or padding of -1?")
    if vocab_size is not None and high >= vocab_size:
        raise ValueError(
            f"tokens holds the id {high}, expected 0 to {vocab_size - 1}: do they come from another tokenizer?"
        )


def check_id(name, value, vocab_size=None):
    """Refuses what is not the id of a token.

    Raises:
        ValueError: ``value`` is no integer, below 0, or, where ``vocab_size`` is given, outside of the vocabulary.
    """
    check_integer(name, value, 0, None if vocab_size is None else vocab_size - 1, why=": the id of a token")


def check_share(name, value, *, above_zero=False):
    """Refuses what is not a share, from 0 (or above it) to 1.

    Raises:
        ValueError: it is no number, or out of range.
    """
    check_number(name, value, 0, 1, above=above_zero, why=": a share")


def check_positive(name, value):
    """Refuses what is not a finite number above 0.

    Raises:
        ValueError: it is not.
    """
    check_number(name, value, above=True)


def check_generator(generator):
    """Refuses what is not a generator of random numbers on the CPU.

    Raises:
        TypeError: it is something else.
        ValueError: it is on another device.
    """
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator is a {type(generator).__name__}, expected torch.Generator().manual_seed(...): "
            "what is drawn shall be drawn again"
        )
    if generator.device.type != "cpu":
        raise ValueError(f"the generator is on {generator.device}, expected one on the CPU")


def valid_tokens(shape, valid_lens, device=None):
    """Which tokens are no padding.

    Args:
        shape: (B, T).
        valid_lens: integers (B,), how many of each row are text; None: all.
        device: where the mask is to be if ``valid_lens`` is None.

    Returns:
        Boolean (B, T).

    Raises:
        TypeError: ``valid_lens`` is not an integer tensor.
        ValueError: it has another shape, or holds a length below 0 or above T.
    """
    if valid_lens is None:
        return torch.ones(shape, dtype=torch.bool, device=device)
    mask = padding_mask(valid_lens, shape[1])  # (B, 1, T)
    if tuple(valid_lens.shape) != (shape[0],):
        raise ValueError(f"valid_lens has shape {tuple(valid_lens.shape)}, expected ({shape[0]},): a length a row")
    return mask[:, 0]
