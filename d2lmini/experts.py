"""A mixture of experts: many feed-forward networks, of which each token goes through one.

Parameters grow with the number of experts, the work for a token does not. A `SwitchFFN` stands where the feed-forward
network of a block does: ``TransformerEncoderBlock(..., ffn=SwitchFFN(...))``.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from .transformer import PositionWiseFFN


class Routing(NamedTuple):
    """Where each of n tokens goes: ``experts`` (n,), ``gates`` (n,), ``kept`` (n,), and the ``balance_loss``, a scalar.

    A gate is the probability that the router gave to the expert; a token that is not kept found its expert full.
    """

    experts: torch.Tensor
    gates: torch.Tensor
    kept: torch.Tensor
    balance_loss: torch.Tensor


def route(scores, capacity=None):
    """Sends each token to the expert that scores highest; the first come first.

    The balance loss is N * sum_i f_i P_i, f_i being the share of the tokens that prefer expert i and P_i its mean
    probability. It is 1 where either is 1/N for all experts, and N where all tokens are sure of the same one. Only P_i
    has a gradient.

    Args:
        scores: (n, N), of n tokens for N experts.
        capacity: how many tokens an expert takes; None: all.

    Returns:
        A `Routing`.

    Source: Fedus et al. 2022, equations 1 to 6.
    """
    N = scores.shape[1]
    probabilities = scores.to(torch.promote_types(scores.dtype, torch.float32)).softmax(-1)  # (n, N)
    gates, experts = probabilities.max(-1)  # (n,), (n,)
    chosen = F.one_hot(experts, N)  # (n, N)
    place = (chosen.cumsum(0) * chosen).sum(-1)  # (n,): from 1, in the queue of the expert
    kept = place <= (len(scores) if capacity is None else capacity)
    balance_loss = N * (chosen.to(probabilities.dtype).mean(0) * probabilities.mean(0)).sum()
    if not len(scores):
        balance_loss = probabilities.sum()  # 0: the mean of no tokens is NaN
    return Routing(experts, gates, kept, balance_loss)


class SwitchFFN(nn.Module):
    """N feed-forward networks and a router: a token gets the output of its expert times the router's probability.

    An expert takes ``capacity_factor`` * n / N of the n tokens of a call, rounded up. The others are dropped: their
    output is 0, and in a block the residual connection carries them past. So what becomes of a token depends on those
    before it in the batch, padding too; with a factor of None it does not.

    ``routing`` is the `Routing` of the last call. In training, add a little of ``routing.balance_loss`` to the loss
    (the paper: 0.01 of it), so that a few experts do not get all the tokens.

    Args:
        ffn_num_hiddens: size of the hidden layer of each expert.
        num_hiddens: h, features of a token.
        num_experts: N.
        capacity_factor: None: no token is dropped.

    Raises:
        ValueError: there is no expert, or ``capacity_factor`` is not above 0.

    Source: Fedus et al. 2022, section 2.
    """

    def __init__(self, ffn_num_hiddens, num_hiddens, num_experts, capacity_factor=1.25):
        super().__init__()
        if num_experts < 1 or (capacity_factor is not None and not capacity_factor > 0):
            raise ValueError(
                f"num_experts is {num_experts} and capacity_factor {capacity_factor}: expected at least 1, and a "
                "number above 0 or None"
            )
        self.router = nn.Linear(num_hiddens, num_experts, bias=False)
        self.experts = nn.ModuleList(
            PositionWiseFFN(ffn_num_hiddens, num_hiddens, num_inputs=num_hiddens) for _ in range(num_experts)
        )
        self.capacity_factor = capacity_factor
        self.routing = None

    def forward(self, X):
        """(B, T, h) to (B, T, h)."""
        tokens = X.flatten(0, -2)  # (n, h)
        capacity = None
        if self.capacity_factor is not None:
            capacity = math.ceil(self.capacity_factor * len(tokens) / len(self.experts))
        self.routing = route(self.router(tokens), capacity)
        Y = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            mine = ((self.routing.experts == i) & self.routing.kept).nonzero()[:, 0]  # (at most capacity,)
            outputs = self.routing.gates[mine, None] * expert(tokens[mine])
            Y = Y.index_copy(0, mine, outputs.to(Y.dtype))
        return Y.unflatten(0, X.shape[:-1])  # (B, T, h)

    def __getstate__(self):
        return {**super().__getstate__(), "routing": None}  # a copy or a file starts afresh
