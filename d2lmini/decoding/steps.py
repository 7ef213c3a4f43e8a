"""What every way of decoding shares: what it returns, the rows of a state, and the checks of each step."""

from typing import NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from ..arguments import check_integer
from ..renamed import Attribute


class Decoded(NamedTuple):
    """What a search found for each of B examples; with n sequences an example, (B, n) stands for (B,).

    ``tokens``, (B, L), are those after <bos>, filled up with the <eos> that ended the sequence; L counts the longest
    with its <eos>. ``valid_lens``, (B,), count the tokens before the first <eos>. ``scores``, (B,), are
    log-probabilities with the <eos>, over the length penalty if there is one.
    """

    tokens: torch.Tensor
    valid_lens: torch.Tensor
    scores: torch.Tensor
    lengths = Attribute("lengths", "valid_lens")


def reorder(state, index, *, keep=()):
    """The rows ``index`` of every tensor in ``state``, as a new state of the same structure.

    Args:
        state: any nesting of tuples, lists and dicts of tensors with the batch first.
        index: integers of shape (n,); a row may be taken several times.
        keep: tensors that stay as they are, wherever one of them, and not just its equal, is in ``state``.
    """
    kept = set(map(id, keep))

    def rows(x):
        return x.index_select(0, index) if isinstance(x, torch.Tensor) and id(x) not in kept else x

    return tree_map(rows, state)


def first_tokens(state, bos, max_len=None):
    """The tokens (B,) that the first step gets; checks ``max_len``, where there is one."""
    if max_len is not None:
        check_integer("max_len", max_len, 1)
    if isinstance(bos, torch.Tensor) and bos.dim() == 1:
        if bos.is_floating_point() or bos.dtype == torch.bool:
            raise ValueError(f"bos is {bos.dtype}, expected integers: ids of tokens")
        return bos.long()
    tensors = [x for x in tree_leaves(state) if isinstance(x, torch.Tensor)]
    if not tensors:
        raise ValueError("the state holds no tensor to tell the batch from: pass bos as a tensor of shape (B,)")
    return torch.full((len(tensors[0]),), check_integer("bos", bos, 0), device=tensors[0].device)


def device_of(model, state=()):
    """Where a model computes: where its parameters are, or its state; the CPU where it has neither."""
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    state = [x for x in tree_leaves(state) if isinstance(x, torch.Tensor)]
    return next((x.device for x in (*parameters, *state)), torch.device("cpu"))


class Ends:
    """The tokens that end a sequence.

    Args:
        ids: one id, several, or None: nothing ends.
        device: where they are compared.
        name: what the caller calls them, for messages.
    """

    def __init__(self, ids, device, name="eos"):
        ids = [] if ids is None else ids.tolist() if isinstance(ids, torch.Tensor) else ids
        ids = ids if isinstance(ids, (list, tuple, set, frozenset, range)) else [ids]
        self.ids = [check_integer(name, index, why=": the id of a token, several, or None") for index in ids]
        self.name = name
        self.fill = self.ids[0] if self.ids else 0  # after the end; without an end it never shows
        self._tensor = torch.tensor(self.ids, dtype=torch.long, device=device)

    def among(self, tokens):
        """Which of the tokens, of any shape, end a sequence."""
        return (tokens[..., None] == self._tensor).any(-1)

    def check(self, num_tokens):
        """Raises ValueError where an id is none of ``num_tokens``."""
        for i in self.ids:
            if not 0 <= i < num_tokens:
                raise ValueError(f"{self.name} is {i} but there are {num_tokens} tokens: is it of another vocabulary?")

    def valid_lens(self, tokens):
        """How many tokens (..., L) stand before the first end: (...)."""
        return (~self.among(tokens)).long().cumprod(-1).sum(-1)


def log_probs(logits, rows, ends, t):
    """Log-probabilities (n, V) of step t, a new tensor; only the ``rows`` (n,) that are True have to be good."""
    if logits.dim() != 2 or len(logits) != len(rows):
        raise ValueError(f"step {t} gave logits of shape {tuple(logits.shape)}, expected ({len(rows)}, V)")
    ends.check(logits.shape[1])
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    bad = scores[:, 0].isnan()  # (n,): one logit that is not a number spoils its whole row
    if not bad.any():
        return scores
    if (bad & rows).any():
        raise ValueError(
            f"step {t} gave logits that are NaN or infinite in rows {(bad & rows).nonzero().flatten().tolist()}: did "
            "the training diverge, or does a mask leave no token?"
        )
    return scores.masked_fill(bad[:, None], 0)


def decoded(tokens, scores, ends):
    """A `Decoded` of tokens (..., max_len), cut to the longest with its end."""
    valid_lens = ends.valid_lens(tokens)  # (...)
    longest = int((valid_lens + 1).max()) if valid_lens.numel() else 0
    return Decoded(tokens[..., :longest], valid_lens, scores)
