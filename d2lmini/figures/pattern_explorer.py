"""Figure of chapter 14: who may attend to whom in the three families of Transformers, side by side."""

import torch

from ..hooks import attention_patterns
from ..masks import prefix_mask
from ..models.bert import BERT
from ..models.bert_config import BERT_CONFIGS
from ..models.gpt import GPT
from ..models.gpt_config import GPT_CONFIGS
from ..models.t5 import T5
from ..models.t5_config import T5_CONFIGS
from .base import Figure, table

LONGEST = 14  # tokens: the cells would grow too small


class PatternExplorer(Figure):
    """Patterns of attention side by side: the reader points at a token and sees what it may attend to in each.

    A pattern is a grid, a row for each query and a column for each key. A family with several attentions, as of an
    encoder and a decoder, has them as blocks of one grid; where no block is, there is no such pair.
    `PatternExplorer.of_families` makes the usual ones.

    Args:
        patterns: dict from the name of a family to a triple: T row labels, S column labels, booleans (T, S) or
            (1, T, S), True where a query may attend to a key, as `d2lmini.attention_patterns` gives them; or to a dict
            from names of attentions to such triples. A label means the same token everywhere, so those of one pattern
            differ; there are at most 14.
        token: the label that is pointed at first; None: one in the middle.

    Raises:
        TypeError: a pattern is not boolean.
        ValueError: there is nothing to show, shapes do not fit, labels repeat or are too many, two attentions of a
            family have the same pair, or there is no such token.

    Source: D2L figures 11.9.1, 11.9.3 and 11.9.6; Raffel et al. 2020, section 3.2.1 and figures 3 and 4.
    """

    name = "pattern_explorer"
    title = "Who may look at whom"
    hint = (
        "Point at a token, or at a row of a grid: orange is what it may look at, in each kind of model. By keyboard: "
        "arrow keys go from token to token."
    )

    def __init__(self, patterns, token=None):
        if not patterns:
            raise ValueError("there is nothing to show: expected at least one family")
        families, tokens = [], {}
        for name, blocks in patterns.items():
            blocks = dict(blocks) if isinstance(blocks, dict) else {"": blocks}
            checked = [_block(name, what, *block) for what, block in blocks.items()]
            if not checked:
                raise ValueError(f"{name!r} has no pattern")
            pairs = [(row, column) for block in checked for row in block["rows"] for column in block["columns"]]
            if len(set(pairs)) < len(pairs):
                raise ValueError(f"two attentions of {name!r} have the same pair of tokens: expected them apart")
            for block in checked:
                tokens.update(dict.fromkeys([*block["rows"], *block["columns"]]))
            families.append({"name": str(name), "blocks": checked})
        tokens = list(tokens)
        if len(tokens) > LONGEST:
            raise ValueError(f"there are {len(tokens)} tokens, expected at most {LONGEST}")
        token = tokens[len(tokens) // 2] if token is None else token
        if token not in tokens:
            raise ValueError(f"there is no token {token!r}, only {', '.join(tokens)}")
        for family in families:
            for block in family["blocks"]:
                for side in ("rows", "columns"):
                    block[side] = [tokens.index(label) for label in block[side]]
        super().__init__(
            f"Which of {len(tokens)} tokens may attend to which, in {', '.join(patterns)}.",
            tokens=tokens,
            families=families,
            token=tokens.index(token),
        )

    @classmethod
    def of_families(cls, tokens, prefix, **options):
        """The three families on one sequence, by calling toy models and looking where their weights are not zero.

        An encoder (`BERT`), which sees all; a decoder (`GPT`), which sees what is before; a decoder that sees all of a
        prefix, the same blocks with `prefix_mask`; an encoder of the prefix with a decoder of the rest (`T5`). The
        decoder's start token, which stands before the rest, is left out.

        Args:
            tokens: str, cut at spaces, or a list; 2 to 14. One that occurs again gets a number.
            prefix: how many of the first ones are the prefix, from 1 to one less than all.
            options: ``token``, as for the class.

        Returns:
            A `PatternExplorer`.

        Raises:
            ValueError: there are too few or too many tokens, or the prefix leaves nothing.
        """
        tokens = _apart(tokens.split() if isinstance(tokens, str) else tokens)
        N = len(tokens)
        if not 2 <= N <= LONGEST:
            raise ValueError(f"there are {N} tokens, expected 2 to {LONGEST}")
        if not 1 <= prefix < N:
            raise ValueError(f"prefix is {prefix}, expected 1 to {N - 1}: both parts need a token")
        source, target = tokens[:prefix], tokens[prefix:]
        patterns = _toy_patterns(N, prefix)
        return cls(
            {
                "encoder only": (tokens, tokens, patterns["all"]),
                "decoder only": (tokens, tokens, patterns["causal"]),
                "decoder only, with a prefix": (tokens, tokens, patterns["prefix"]),
                "encoder and decoder": {
                    "encoder": (source, source, patterns["encoder"]),
                    "cross": (target, source, patterns["cross"]),
                    "decoder": (target, target, patterns["decoder"]),
                },
            },
            **options,
        )

    def pairs(self, family):
        """How many pairs of a query and a key a family computes.

        Args:
            family: its name.

        Returns:
            dict from the name of each of its attentions to the number.

        Raises:
            KeyError: there is no such family.
        """
        families = {card["name"]: card["blocks"] for card in self.state["families"]}
        return {block["name"]: block["data"].count("1") for block in families[family]}

    def sees(self, family, token):
        """The tokens that a token may attend to in a family, list of str, by attention, then in order."""
        state = self.state
        blocks, row = {card["name"]: card["blocks"] for card in state["families"]}[family], state["tokens"].index(token)
        return [
            state["tokens"][column]
            for block in blocks
            if row in block["rows"]
            for s, column in enumerate(block["columns"])
            if block["data"][block["rows"].index(row) * len(block["columns"]) + s] == "1"
        ]

    def fallback(self):
        names = [family["name"] for family in self.state["families"]]
        rows = [[token, *(" ".join(self.sees(name, token)) for name in names)] for token in self.state["tokens"]]
        totals = "; ".join(f"{name}: {sum(self.pairs(name).values())}" for name in names)
        return table(["token", *names], rows, f"What each token may look at. Pairs that are allowed: {totals}.")


def _block(family, what, rows, columns, pattern):
    """One attention of a family, as the page takes it, with labels still."""
    rows, columns, where = list(map(str, rows)), list(map(str, columns)), f"the pattern {what or family!r}"
    pattern = torch.as_tensor(pattern).cpu()
    pattern = pattern[0] if pattern.dim() == 3 and len(pattern) == 1 else pattern
    if pattern.dtype != torch.bool:
        raise TypeError(f"{where} is {pattern.dtype}, expected booleans: weights != 0, or attention_patterns")
    if pattern.shape != (len(rows), len(columns)) or not pattern.numel():
        raise ValueError(
            f"{where} has shape {tuple(pattern.shape)}, expected ({len(rows)}, {len(columns)}): there are {len(rows)} "
            f"row and {len(columns)} column labels"
        )
    for labels in (rows, columns):
        if len(set(labels)) < len(labels):
            raise ValueError(f"labels of {where} repeat: {' '.join(labels)}; expected names apart, as the, the₂")
    return {
        "name": str(what),
        "rows": rows,
        "columns": columns,
        "data": "".join("01"[int(seen)] for seen in pattern.flatten()),
    }


def _apart(tokens):
    """Tokens with a number at those that came before."""
    tokens, numbered = list(map(str, tokens)), []
    for i, token in enumerate(tokens):
        times = tokens[: i + 1].count(token)
        number = "" if times == 1 else str(times).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
        numbered.append(token + number)
    return numbered


def _toy_patterns(N, prefix):
    """Patterns (1, T, S) of small models that were called on N tokens."""
    ids = torch.arange(1, N + 1)[None]  # 0 is padding
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        bert, gpt, t5 = BERT(BERT_CONFIGS["toy"]), GPT(GPT_CONFIGS["toy"]), T5(T5_CONFIGS["toy"])
    pair = attention_patterns(t5, ids[:, :prefix], ids[:, prefix:])
    return {
        "all": _of_all(attention_patterns(bert, ids)),
        "causal": _of_all(attention_patterns(gpt, ids)),
        # BERT's blocks are those of a decoder, too: the mask alone makes the difference
        "prefix": _of_all(attention_patterns(bert, ids, mask=prefix_mask(torch.tensor([prefix]), N))),
        "encoder": _of_all(pair, "encoder."),
        "decoder": _of_all(pair, "attention1"),
        "cross": _of_all(pair, "attention2"),
    }


def _of_all(patterns, part=""):
    """The pattern that all attentions of this part of a model have."""
    first, *others = (pattern for name, pattern in patterns.items() if part in name)
    if not all(torch.equal(first, other) for other in others):
        raise ValueError(f"the blocks of a model have unlike patterns: {', '.join(patterns)}")
    return first
