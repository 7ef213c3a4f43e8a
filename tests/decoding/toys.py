"""Small models whose sequences can be counted, and what the tests of decoding ask of a result."""

from typing import NamedTuple

import torch

BOS, EOS = 0, 1


class State(NamedTuple):
    prefix: torch.Tensor  # (B, t)
    example: torch.Tensor  # (B,)
    more: dict


def start(B):
    return State(torch.zeros(B, 0).long(), torch.arange(B), {"twice": [2 * torch.arange(B)], "nothing": None})


class Model:
    """Logits drawn at random for every example and prefix; the state is checked at each step."""

    def __init__(self, V, seed, sharpness=2.0):
        self.V, self.seed, self.sharpness, self.calls = V, seed, sharpness, 0

    def logits(self, example, prefix):
        draw = torch.Generator().manual_seed(hash((self.seed, example, *prefix)) % 2**31)
        return self.sharpness * torch.randn(self.V, generator=draw, dtype=torch.float64)

    def __call__(self, tokens, state):
        self.calls += 1
        assert torch.equal(state.more["twice"][0], 2 * state.example)  # the whole state is of the same row
        prefix = torch.cat([state.prefix, tokens[:, None]], 1)
        rows = zip(state.example.tolist(), prefix.tolist(), strict=True)
        return torch.stack([self.logits(e, p) for e, p in rows]), state._replace(prefix=prefix)


def log_prob(model, example, tokens):
    total, prefix = 0.0, [BOS]
    for token in tokens:
        total += model.logits(example, prefix).log_softmax(-1)[token].item()
        prefix.append(token)
    return total


def penalised(total, length, alpha):
    return total / ((5 + length) / 6) ** alpha


def cut(found, b):
    """The tokens of one example, with its <eos> where it has one."""
    tokens = found.tokens[b].tolist()
    return tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens


def check_form(found, B, max_len):
    L = found.tokens.shape[1]
    assert found.tokens.shape == (B, L) and 1 <= L <= max_len
    assert max(len(cut(found, b)) for b in range(B)) == L
    for b in range(B):
        length = found.valid_lens[b].item()
        assert EOS not in found.tokens[b, :length] and (found.tokens[b, length:] == EOS).all()


class Table:
    """Logits from a table: probabilities after each token, whatever came before it."""

    def __init__(self, *rows):
        self.rows = torch.tensor(rows).log()

    def __call__(self, tokens, state):
        return self.rows[tokens], state


#               <bos> <eos>   a    b
TRAP = Table([0.0, 0.0, 0.6, 0.4], [1, 0, 0, 0], [0.0, 0.5, 0.25, 0.25], [0.0, 0.99, 0.005, 0.005])
