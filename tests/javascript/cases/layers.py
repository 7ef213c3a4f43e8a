"""Layers beside PyTorch's in float64: what they give, and gradients by what they got and by their weights."""

import torch

from d2lmini import MultiHeadAttention
from d2lmini.models.named_parts import ACTIVATIONS
from d2lmini.position import alibi, sinusoidal
from d2lmini.rotation import RotaryEmbedding
from d2lmini.transformer import PositionWiseFFN

from ._weights import drawn_into, rounded, uniform

MODULE = "tests/javascript/runtime.js"
WITHIN = 1e-5
H = 6


def cases():
    yield of_layer("Linear", torch.nn.Linear(H, 4), 4)
    yield of_layer("Linear", torch.nn.Linear(H, 9, bias=False), 9)
    yield of_layer("LayerNorm", torch.nn.LayerNorm(H), H)
    yield of_layer("RMSNorm", torch.nn.RMSNorm(H, eps=2**-23), H)
    for name, make in (ACTIVATIONS | {"silu": torch.nn.SiLU}).items():
        x = torch.linspace(-4, 4, 17, dtype=torch.float64, requires_grad=True)
        y = make()(x)
        y.sum().backward()
        yield "activated", [name, rounded(x)], [rounded(y), rounded(x.grad)]
    network = PositionWiseFFN(7, H, num_inputs=H, activation=ACTIVATIONS["gelu_tanh"])
    yield of_layer("PositionWiseFFN", network, H, activation="gelu_tanh")
    yield from attentions()
    weight = uniform(3, 5, 2)
    yield "embedded", [rounded(weight), [5, 2], [4, 0, 4, 2], 1.5], rounded(1.5 * weight[[4, 0, 4, 2]])
    yield "sines", [[0, 3, 11], 6], rounded(sinusoidal(12, 6)[[0, 3, 11]])
    for scores, first, end in (([1.0, 2.0, -3.0, 0.5], 0, 4), ([800.0, -800.0, 799.0, 9.0], 1, 3), ([1.0, 2.0], 1, 1)):
        kept = torch.full((len(scores),), -torch.inf)
        kept[first:end] = torch.tensor(scores[first:end])
        yield "softmaxOf", [scores, first, end], rounded(kept.softmax(0).nan_to_num())


def of_layer(kind, module, outputs, T=5, seed=0, run=None, **options):
    """A case of `layer`: the loss is the sum of the products of its outputs (T, outputs) with random numbers."""
    shapes = drawn_into(module, seed)
    X, dY = uniform(1, T, H).requires_grad_(), uniform(2, T, outputs)
    Y = (run or module)(X)
    (Y * dY).sum().backward()
    gradients = {name: rounded(weight.grad) for name, weight in module.named_parameters()}
    given = {"T": T, "X": rounded(X), "dY": rounded(dY), **options}
    return "layer", [kind, shapes, seed, given], {"Y": rounded(Y), "dX": rounded(X.grad), "gradients": gradients}


def attentions():
    for causal, rotary, slopes, batch in (
        (False, 0, False, 1),
        (True, 0, False, 2),
        (True, 2, False, 1),
        (True, 0, True, 2),
    ):
        attention = MultiHeadAttention(H, 3)
        options = {"causal": causal}
        if rotary:
            options["rotary"] = RotaryEmbedding(rotary)
        if slopes:
            options["score_bias"] = alibi(3, 3)

        def run(X, attention=attention, options=options, batch=batch):
            X = X.view(batch, -1, H)
            return attention(X, X, X, **options).flatten(0, 1)

        more = {"num_heads": 3, "causal": causal, "batch": batch, "rotary_size": rotary, "alibi": slopes}
        yield of_layer("MultiHeadAttention", attention, H, T=6, run=run, **more)
