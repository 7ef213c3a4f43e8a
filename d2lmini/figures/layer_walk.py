"""Figure of chapter 07: a walk through one Transformer encoder block, with real numbers."""

import copy
import math

import torch

from ..data.tatoeba import clean
from ..models.weights.trained import trained
from ..transformer import TransformerEncoderBlock
from .base import Figure, table

OWN, ALL = "own row", "all rows"
# What a row of each of the 14 stages is made from: of an earlier stage, its own row or all rows. By `norm_first`.
USES = {
    False: [
        *([], [(1, OWN)], [(1, OWN)], [(1, OWN)]),  # input; queries, keys, values
        *([(2, OWN), (3, ALL)], [(5, OWN)], [(6, OWN), (4, ALL)], [(7, OWN)]),  # attention
        *([(1, OWN), (8, OWN)], [(9, OWN)]),  # add, norm
        *([(10, OWN)], [(11, OWN)]),  # the network
        *([(10, OWN), (12, OWN)], [(13, OWN)]),  # add, norm
    ],
    True: [
        *([], [(1, OWN)], [(2, OWN)], [(2, OWN)], [(2, OWN)]),  # input; norm; queries, keys, values
        *([(3, OWN), (4, ALL)], [(6, OWN)], [(7, OWN), (5, ALL)], [(8, OWN)]),  # attention
        *([(1, OWN), (9, OWN)], [(10, OWN)]),  # add; norm
        *([(11, OWN)], [(12, OWN)], [(10, OWN), (13, OWN)]),  # the network; add
    ],
}
UNTRAINED = "The parameters are not trained: they are random."


class LayerWalk(Figure):
    """Every stage of an encoder block as a small shaded table, a row for each token.

    The stages are computed with the block's own parts, and the last one is checked against the block itself. The
    reader goes back and forth, chooses a head, and follows a token by its row.

    Args:
        block: a small `TransformerEncoderBlock`, with the norms on either side; used as in evaluation, not changed.
        tokens: N different words.
        X: (N, h) or (1, N, h), what goes into the block.
        stage: which stage is shown first, from 1.
        head: which head, from 1.
        weights: where the block's weights come from, a sentence for the reader.

    Raises:
        TypeError: ``block`` is no `TransformerEncoderBlock`.
        ValueError: shapes do not fit, words repeat, there is no such stage or head, a number is not finite, or the
            parts do not give what the block gives.
    """

    name = "layer_walk"
    title = "Through one encoder block"
    hint = (
        "Click a stage, or walk with the buttons: its part of the formulas is lit. Point at a row to see what it is "
        "made from."
    )

    def __init__(self, block, tokens, X, stage=1, head=1, weights=UNTRAINED):
        if not isinstance(block, TransformerEncoderBlock):
            raise TypeError(f"block is a {type(block).__name__}, expected a TransformerEncoderBlock")
        tokens, X = [str(token) for token in tokens], torch.as_tensor(X).detach()
        if len(set(tokens)) != len(tokens):
            raise ValueError(f"tokens name the rows, so they must differ: {tokens}")
        N, h, H = len(tokens), block.attention.W_o.in_features, block.attention.num_heads
        if tuple(X.shape) not in ((N, h), (1, N, h)):
            raise ValueError(f"X has shape {tuple(X.shape)}, expected ({N}, {h}): {N} tokens, and num_hiddens is {h}")
        if not torch.isfinite(X).all():
            raise ValueError("X holds numbers that are not finite")
        block = copy.deepcopy(block).eval()  # no dropout
        with torch.no_grad():
            X = X.reshape(1, N, h).to(block.attention.W_o.weight)
            stages = _stages(block, X)
            difference = (stages[-1][2] - block(X)).abs().max().item()
        if not difference < 1e-4:
            raise ValueError(f"the parts of the block miss its output by {difference:.2g}: is it a class of its own?")
        if not (1 <= stage <= len(stages) and 1 <= head <= H):
            raise ValueError(f"stage {stage} and head {head}: expected 1 to {len(stages)} and 1 to {H}")
        super().__init__(
            f"The {len(stages)} stages of one encoder block, for {N} tokens: choose stage, head and token.",
            tokens=tokens,
            num_heads=H,
            stages=[
                {
                    "title": title,
                    "text": text,
                    "shape": shape,
                    "among": among,
                    "uses": uses,
                    # many are shades in the page, not figures
                    "numbers": numbers[0].double().round(decimals=3 if numbers.shape[-1] <= 16 else 2),
                }
                for (title, text, numbers, shape, among), uses in zip(stages, USES[block.norm_first], strict=True)
            ],
            norm_first=block.norm_first,
            equations=_formulas(block),
            weights=weights,
            stage=stage,
            head=head,
        )

    @classmethod
    def of_translator(cls, text, block=1, **options):
        """A block of the encoder that this book trained on the grammar's sentences.

        Args:
            text: an English sentence, str; its tokens differ, the last is ``<eos>``.
            block: which block, from 1; those before it compute what goes in.
            options: ``stage`` and ``head``, as for the class.

        Returns:
            A `LayerWalk`.

        Raises:
            ValueError: there is no such block, or what the class refuses.
        """
        model = trained("translator_grammar")
        encoder, tokenizer = model.encoder, model.tokenizer
        if not 1 <= block <= len(encoder.blks):
            raise ValueError(f"block is {block}, expected 1 to {len(encoder.blks)}")
        ids = [*tokenizer.encode_batch([clean(text)])[0], tokenizer["<eos>"]]
        entering = []
        hook = encoder.blks[block - 1].register_forward_pre_hook(lambda module, args: entering.append(args[0]))
        with torch.no_grad():
            encoder(torch.tensor([ids]))
        hook.remove()
        said = f"The weights are trained: block {block} of {len(encoder.blks)} of a translator."
        return cls(encoder.blks[block - 1], tokenizer.to_tokens(ids), entering[0], weights=said, **options)

    def numbers(self, stage, head=1):
        """What the page shows.

        Args:
            stage: from 1.
            head: from 1; of no effect on stages that all heads share.

        Returns:
            (N, features), or (N, N) for scores and weights, to three decimals; to two, where there are more than 16.
        """
        numbers = torch.tensor(self.state["stages"][stage - 1]["numbers"])
        return numbers[head - 1] if numbers.dim() == 3 else numbers

    def fallback(self):
        state = self.state
        rows = []
        for i, stage in enumerate(state["stages"], start=1):
            first, *_ = self.numbers(i, state["head"]).tolist()
            row = ", ".join(f"{x:.2f}" for x in first[:12]) + (", …" if len(first) > 12 else "")
            made = "; ".join(f"{which} of {state['stages'][n - 1]['title']}" for n, which in stage["uses"])
            rows.append([f"{i}. {stage['title']}", stage["text"], made, stage["shape"], row])
        caption = f"One encoder block, stage by stage; where a stage has heads, head {state['head']}."
        header = ["stage", "what happens", "a row is made from", "shape", f"row of “{state['tokens'][0]}”"]
        return table(header, rows, caption)


def _formulas(block):
    """The block in formulas, line by line: each part with the number of its stage, which is lit there."""
    attention, ffn = block.attention, block.ffn

    def times(letter, linear):
        return f" W_{letter}" + (f" + b_{letter}" if linear.bias is not None else "")

    by_q, by_k, by_v, by_o = (times(letter, getattr(attention, f"W_{letter}")) for letter in "qkvo")
    by_1, by_2 = times(1, ffn.dense1), times(2, ffn.dense2)
    activation = type(ffn.activation).__name__
    if block.norm_first:
        return [
            [[2, "Z = LN(", [1, "X"], ")"]],
            [[3, f"Q = Z{by_q}"], ", ", [4, f"K = Z{by_k}"], ", ", [5, f"V = Z{by_v}"]],
            [[8, "O = ", [7, "softmax(", [6, "Q Kᵀ / √d"], ")"], " V"]],
            [[10, "X′ = X + ", [9, f"[O_1 … O_H]{by_o}"]]],
            [[14, "Y = X′ + ", [13, [12, f"{activation}(", [11, "LN(X′)"], f"{by_1})"], by_2]]],
        ]
    return [
        [[2, "Q = ", [1, "X"], by_q], ", ", [3, f"K = X{by_k}"], ", ", [4, f"V = X{by_v}"]],
        [[7, "O = ", [6, "softmax(", [5, "Q Kᵀ / √d"], ")"], " V"]],
        [[10, "X′ = LN(", [9, "X + ", [8, f"[O_1 … O_H]{by_o}"]], ")"]],
        [[14, "Y = LN(", [13, "X′ + ", [12, [11, f"{activation}(X′{by_1})"], by_2]], ")"]],
    ]


def _stages(block, X):
    """Title, a sentence, numbers (1, N, m) or (1, H, N, m), their shape in words, and whether columns are tokens."""
    attention, ffn = block.attention, block.ffn
    (_, N, h), H = X.shape, attention.num_heads
    d, f = h // H, ffn.dense1.out_features

    def heads(projected):
        return projected.unflatten(-1, (H, d)).transpose(1, 2)  # (1, H, N, d)

    first_norm, second_norm = block.addnorm1.ln, block.addnorm2.ln
    read = first_norm(X) if block.norm_first else X  # (1, N, h)
    queries, keys, values = (heads(W(read)) for W in (attention.W_q, attention.W_k, attention.W_v))
    scores = queries @ keys.mT / math.sqrt(d)  # (1, H, N, N)
    weights = scores.softmax(-1)
    brought = weights @ values  # (1, H, N, d)
    mixed = attention.W_o(brought.transpose(1, 2).flatten(2))  # (1, N, h)
    first = X + mixed
    into_network = second_norm(first) if block.norm_first else first_norm(first)
    hidden = ffn.activation(ffn.dense1(into_network))  # (1, N, f)
    thought = ffn.dense2(hidden)
    second = (first if block.norm_first else into_network) + thought
    whole, head = f"(T, h) = ({N}, {h})", f"(T, h / H) = ({N}, {d})"
    square, wide = f"(T, T) = ({N}, {N})", f"(T, f) = ({N}, {f})"
    activation = type(ffn.activation).__name__
    bias = ", plus a bias" if attention.W_o.bias is not None else ""
    scaled = "Each row gets mean zero and variance one, then learned factors and shifts."
    attending = [
        *(
            (name, f"Each row times the head's part of W_{name[0]}{bias}: what the token {what}.", made, head, False)
            for name, what, made in (
                ("queries", "looks for", queries),
                ("keys", "is found by", keys),
                ("values", "gives when found", values),
            )
        ),
        ("scores", f"Each query with each key, divided by the root of {d}: a row for a query.", scores, square, True),
        ("weights", "A softmax over each row of scores: positive numbers that sum to one.", weights, square, True),
        ("what the head brings", "Each row of weights averages the rows of the values.", brought, head, False),
        ("after W_o", f"The heads side by side again, h numbers a row, times W_o{bias}.", mixed, whole, False),
        ("first residual", "What was fetched is added to the input.", first, whole, False),
    ]
    thinking = [
        ("hidden layer", f"The network reads each row by itself; {activation} follows.", hidden, wide, False),
        ("network's output", "Back to h numbers for each token.", thought, whole, False),
    ]
    given = ("input", "Each token comes as a row of h numbers: what goes into this block.", X, whole, False)
    if block.norm_first:
        branch = "The network's output is added to the first sum: the block's output, shaped as its input."
        return [
            given,
            ("first norm", f"{scaled} Only attention reads this.", read, whole, False),
            *attending,
            ("second norm", f"{scaled} Only the network reads this.", into_network, whole, False),
            *thinking,
            ("second residual", branch, second, whole, False),
        ]
    final = "Normalised row by row: the block's output, shaped as its input."
    return [
        given,
        *attending,
        ("first norm", scaled, into_network, whole, False),
        *thinking,
        ("second residual", "What the network computed is added to what went into it.", second, whole, False),
        ("second norm", final, second_norm(second), whole, False),
    ]
