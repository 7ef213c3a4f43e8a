"""Chapter 19: which heads of a real language model it needs to repeat what it has read.

Random tokens are written twice, as in `real_answers`, and heads are switched off: the induction heads, those with the
highest induction scores; the heads that attend most to the previous token; for comparison as many random heads, of all
blocks or of the induction heads' own, many times; and each single head that is not above all induction heads, since an
induction head of chapter 15 needs another head below it.

Source: Olsson et al. 2022.
"""

from dataclasses import dataclass, replace
from statistics import median

import torch

from d2lmini.experiments.abilities import induction
from d2lmini.experiments.real_model import bases, opened
from d2lmini.lab.parts import Parts


@dataclass(frozen=True)
class Config:
    """Settings.

    ``base`` is one of `bases.BASES`; ``sequences`` have ``period`` random tokens, written twice. Sets of ``num`` heads
    are switched off, random ones ``draws`` times; and together the ``worst`` of the heads that were alone.
    """

    base: str = "smollm2"
    period: int = 24
    sequences: int = 8
    num: int = 5
    draws: int = 20
    worst: int = 2
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(Config(), base="toy", period=6, sequences=2, num=1, draws=2),
    "cpu": replace(Config(), base="shakespeare", num=2),
    "laptop": Config(),
}


def chosen(config):
    """The sets of heads: a dict for JSON.

    Returns:
        dict of lists of sets, a set a list of (block, head), both from 0: ``none``, ``induction`` and ``previous``, one
        each; ``anywhere`` and ``same blocks``, random ones; and ``alone``, each head that is not above all induction
        heads.
    """
    model, _ = bases.load(config.base)
    maps = induction.attention_maps(model, opened.random_sequences(model, config))
    induction_heads = strongest(induction.induction_scores(maps, config.period), config.num)
    previous_heads = strongest(induction.previous_scores(maps), config.num)
    blocks, size = {block for block, _ in induction_heads}, (model.config.num_blks, model.config.num_heads)
    heads = [divmod(n, size[1]) for n in range(size[0] * size[1])]
    others = [head for head in heads if head not in induction_heads]
    generator = torch.Generator().manual_seed(config.seeds[0])

    def drawn(of):
        picks = [torch.randperm(len(of), generator=generator)[: config.num].tolist() for _ in range(config.draws)]
        return [[of[n] for n in pick] for pick in picks]

    return {
        "none": [[]],
        "induction": [induction_heads],
        "previous": [previous_heads],
        "anywhere": drawn(others),
        "same blocks": drawn([head for head in others if head[0] in blocks]),
        "alone": [[head] for head in others if head[0] <= max(blocks)],
    }


def strongest(scores, num):
    """The heads of the ``num`` highest of scores (L, H), as (block, head)."""
    return [divmod(n, scores.shape[1]) for n in scores.flatten().topk(num).indices.tolist()]


def measured(sets, config):
    """Of each set the heads ``off``, and the losses of the ``first`` and the ``second`` copy: a list for JSON."""
    model, _ = bases.load(config.base)
    tokens = opened.random_sequences(model, config)
    rows = []
    for off in sets:
        first, second = opened.halves_without(model, tokens, off, config.period)
        rows.append({"off": off, "first": first, "second": second})
    return rows


def run(config, device, parts=None):
    """Switches heads off; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (by the names of `chosen`, and ``worst``, what `measured` gives), no ``curves``, and
        ``data``.
    """
    parts = parts or Parts()
    with bases.one_thread():
        sets = parts("chosen", chosen, config)
        metrics = {name: parts(name.replace(" ", "-"), measured, of, config) for name, of in sets.items()}
        worst = sorted(metrics["alone"], key=lambda row: -row["second"])[: config.worst]
        metrics["worst"] = parts("worst", measured, [[head for row in worst for head in row["off"]]], config)
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": {}, "data": bases.checksums(config.base)}


def headline(metrics, config):
    """The loss of the second copy, with all heads and without some, in a sentence."""
    second = {name: [row["second"] for row in metrics[name]] for name in metrics}
    random = sorted(second["anywhere"])
    return (
        f"random tokens the second time cost {second['none'][0]:.2f} nats, without the {config.num} heads of the "
        f"highest induction scores {second['induction'][0]:.2f}, without {config.num} random ones "
        f"{random[0]:.2f} to {random[-1]:.2f} (median {median(random):.2f}), without the one other head that matters "
        f"most {max(second['alone']):.2f}"
    )
