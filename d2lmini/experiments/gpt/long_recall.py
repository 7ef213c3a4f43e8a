"""Chapter 09: what a GPT makes of longer texts where what was said long ago is worth knowing.

The texts are made up, and in turns say and ask where somebody is: "Anna: garden", "Ben?". Who is where is drawn anew
for each text and stays so throughout it. An answer can be known if the text that was read has the name, and the longer
it is, the more names it has: what more context is worth is known by counting. (In `long_context`, on novels, models
gain next to nothing from more context, so nothing there separates one that uses it from one that does not.) The order
of the statements means nothing here: positions can only be in the way.

GPTs of one design are trained at a context of ``max_len`` tokens and differ in how they tell positions. Each is then
scored at several lengths *on the same questions*: the last ``scored`` ones of texts that it has not seen, with more and
more before them. A model of rotary positions is also scored with positions interpolated and with another base, and
after a short training at a longer length with either, with neither, and (a control) after as much more at the old one.

Source: Press et al. 2022 (ALiBi); Chen et al. 2023 (interpolation); Peng et al. 2024 (the base); Kazemnejad et al. 2023
(no positions).
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

import torch
import torch.nn.functional as F

from d2lmini.experiments.abilities import fresh_data
from d2lmini.experiments.gpt.language import Recipe, batched
from d2lmini.experiments.gpt.long_positions import (
    POSITIONS,
    WHOLE,
    WINDOW,
    LongLearner,
    at_lengths,
    check_lengths,
    tuning,
    tunings,
)
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.objectives.masking import IGNORE_INDEX
from d2lmini.rotation import ROTATIONS, StretchedRotary


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe, whose ``max_len`` is the length of the training; lengths count tokens.

    There are ``names`` names, each as likely as any other to be next, and ``words`` words. ``lengths`` are those of the
    test, the first of them ``max_len``; of ``texts`` texts of the last one the last ``scored`` questions are scored.
    ``longer`` is the length at which models are trained for ``tune_steps`` more, with ``tune_lr`` times the learning
    rates.
    """

    names: int = 32
    words: int = 4
    positions: tuple = tuple(POSITIONS)
    lengths: tuple = (32, 64, 128, 256)
    texts: int = 256
    scored: int = 8
    longer: int = 128
    tune_steps: int = 60
    tune_lr: float = 0.3
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=replace(
        GPT_CONFIGS["modern"], max_len=32, num_hiddens=64, num_heads=4, num_blks=2, ffn_num_hiddens=64, dropout=0.0,
        qk_norm=False, use_bias=True,
    ),
    batch_size=64, steps=300, checks=3, decay=0.3, precision="float32", seeds=(0, 1, 2),
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=8, num_hiddens=16, num_heads=2, ffn_num_hiddens=16), batch_size=4,
        steps=4, checks=2, names=4, words=2, lengths=(8, 16, 32), texts=8, scored=2, longer=16, tune_steps=2,
        seeds=(0, 1),
    ),
    "cpu": replace(_LAPTOP, lengths=(32, 64, 128), texts=64, seeds=(0,)),
    "laptop": _LAPTOP,
}  # fmt: skip


def draw(config, size, length, generator=None):
    """Texts of ``length`` tokens: integers (B, length), in turns statement and question.

    Statements, 0 ... N W - 1, are of a name and a word each; questions, the next N, of a name. ``generator``: of the
    random numbers; None: torch's own.
    """
    words = torch.randint(config.words, (size, config.names), generator=generator)  # of each name in each text
    stated, asked = torch.randint(config.names, (2, size, length // 2), generator=generator)
    statements = config.words * stated + words.gather(1, stated)
    tokens = torch.stack([statements, config.names * config.words + asked], -1).flatten(1)  # (B, length)
    targets = torch.full_like(tokens, IGNORE_INDEX)
    targets[:, 1::2] = config.names * (config.words + 1) + words.gather(1, asked)
    return tokens, targets


def distances(config, tokens):
    """How far back the name of each of the last questions was last stated: integers (B, scored) of tokens, 0: never."""
    names, asked = tokens[:, ::2] // config.words, tokens[:, 1::2] - config.names * config.words
    n, found = names.shape[1], []
    for i in range(n - config.scored, n):
        same = names[:, : i + 1] == asked[:, i : i + 1]  # (B, i + 1)
        back = torch.where(same, 2 * torch.arange(i, -1, -1) + 1, 2 * n).amin(1)
        found.append(torch.where(back < 2 * n, back, 0))
    return torch.stack(found, 1)


@torch.no_grad()
def answers(model, texts, length, config):
    """Losses in nats of the answers to the last questions, (texts, scored), and which are right.

    Texts are read from ``length`` tokens before their end.
    """
    device, rows, right = model.embedding.weight.device, [], []
    X, Y = (part[:, -length:] for part in texts)
    for part in batched(range(len(X)), max(1, 8_192 // length)):  # a slice of a range is a range
        i = slice(part.start, part.stop)
        logits, target = model(X[i].to(device))[:, 1::2], Y[i, 1::2].to(device)
        logits, target = logits[:, -config.scored :], target[:, -config.scored :]
        rows.append(F.cross_entropy(logits.mT, target, reduction="none").cpu().double())  # (b, scored)
        right.append((logits.argmax(-1) == target).cpu())
    return torch.cat(rows), torch.cat(right)


def before_questions(config, length):
    """How many tokens are before each of the last questions of a text of ``length``: integers (scored,)."""
    return length + 1 - 2 * torch.arange(config.scored, 0, -1)


def bands(config):
    """Distances in tokens by which answers are grouped: up to the first length, from there to the second, ..."""
    return list(pairwise((0, *config.lengths)))


def score(model, texts, config, rotation=None, factor=None, window=None):
    """What a model makes of each length: dict for JSON, with a list over ``config.lengths`` for each name.

    Args:
        model: a `LongLearner`; as it was afterwards.
        texts: tokens and targets, as `draw` gives them, of the longest test.
        config: settings.
        rotation: None, or one of `ROTATIONS`: how rotary positions are stretched at lengths above that of the training.
        factor: by how much; None: by length over that of the training.
        window: None, or how many last positions may be attended to.

    Returns:
        ``loss`` of the last answers in nats; ``right``, the share of them that is given the highest score;
        ``by_distance``, for each length the share that is right of those whose name was last stated so many tokens
        before as `bands` says (None: of such there are none in what is read). A length that the model refuses has
        None, and why is in ``refused``.
    """
    back, result = distances(config, texts[0]), {"loss": [], "right": [], "by_distance": []}
    model.window = window
    try:
        read, result["refused"] = at_lengths(
            model, config.lengths, lambda length: answers(model, texts, length, config), rotation, factor
        )
    finally:
        model.window = None
    for length, found in zip(config.lengths, read, strict=True):
        if found is None:
            for name in ("loss", "right", "by_distance"):
                result[name].append(None)
            continue
        losses, right = found
        result["loss"].append(losses.mean().item())
        result["right"].append(right.cpu().double().mean().item())
        known = (back > 0) & (back <= before_questions(config, length))
        groups = [right[known & (back > low) & (back <= high)] for low, high in bands(config)]
        result["by_distance"].append([group.cpu().double().mean().item() if len(group) else None for group in groups])
    return result


def ideal(texts, config):
    """What can be known: for each length the ``share`` of the scored questions whose name is in the text that is read.

    ``right`` is the share of right answers where all others are guessed.
    """
    back, shares = distances(config, texts[0]), []
    for length in config.lengths:
        shares.append(((back > 0) & (back <= before_questions(config, length))).cpu().double().mean().item())
    return {"share": shares, "right": [share + (1 - share) / config.words for share in shares]}


def texts_of_test(config):
    """The texts on which all models are scored: tokens and targets, (texts, length of the longest test)."""
    return draw(config, config.texts, config.lengths[-1], torch.Generator().manual_seed(10_000))


def train(recipe, positions, device, seed, parts, name, begin=None, rotary=None):
    """Trains a model of one of `POSITIONS`, from new weights or from those of ``begin``.

    Returns:
        the trained `LongLearner`, and a dict for JSON: ``curves``, ``parameters``, ``step_s``.
    """
    torch.manual_seed(seed)
    model = replace(
        recipe.model, vocab_size=recipe.names * (recipe.words + 1) + recipe.words, positions=POSITIONS[positions]
    )
    model = LongLearner(replace(recipe, model=model), positions)
    if begin is not None:
        model.load_state_dict(begin.state_dict())
    model.rotary = rotary or model.rotary

    def batch(size):
        return draw(recipe, size, recipe.model.max_len)

    history = fresh_data.fit(model, batch, recipe, device, seed, parts, name)
    seconds = [b - a for a, b in pairwise([0.0, *history["seconds"]])]
    about = {"parameters": model.num_parameters, "step_s": round(median(seconds), 4)}
    return model.eval(), {"curves": summaries.curves(history), "sizes": about}


def learn(positions, config, seed, device, parts):
    """Trains and scores a model, and where its positions are rotary, what is made of it: a list of dicts for JSON.

    Each has a ``name``, ``scores`` and, where it was trained, ``curves`` and ``sizes``.
    """
    texts = texts_of_test(config)
    name = f"{positions}-{seed}"  # of the part; its trainings are kept in its folder
    model, about = train(config, positions, device, seed, parts, f"{name}/trained")
    rows = [{"name": positions, "scores": {WHOLE: score(model, texts, config)}} | about]
    first = rows[0]["scores"]
    if positions != "learned":
        first[WINDOW] = score(model, texts, config, window=config.model.max_len)
    if positions != "rotary":
        return rows
    first |= {rotation: score(model, texts, config, rotation) for rotation in ROTATIONS[1:]}
    for i, (length, rotation) in enumerate(tunings(config)):
        factor = config.longer / config.model.max_len
        stretched = StretchedRotary(factor, rotation)
        recipe = tuning(config, length)
        tuned, about = train(recipe, positions, device, seed, parts, f"{name}/tuned-{i}", model, stretched)
        scores = score(tuned, texts, config, rotation, factor)
        rows.append({"name": f"{rotation}, {length}", "scores": scores} | about)
    return rows


def run(config, device, parts=None):
    """Trains and scores every model with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: ``ideal``, what can be known; ``models[positions][way]``, lists over the seeds of what
        `score` tells, where the way is `WHOLE`, `WINDOW` or, of rotary positions, one of `ROTATIONS` but the first;
        ``tuned[name]``, the same of rotary positions after more training; ``sizes``; and ``curves`` of each training.

    Raises:
        ValueError: the first length of the test is not that of the training, or ``longer`` is none of them.
    """
    check_lengths(config)
    parts, found, curves = parts or Parts(), {}, {}
    for positions in config.positions:
        for seed in config.seeds:
            rows = parts(f"{positions}-{seed}", learn, positions, config, seed, device, parts)
            for row in rows:
                found.setdefault(row["name"], []).append(row)
                curves[f"{row['name']}-{seed}"] = row["curves"]
    models = {name: summaries.columns([row["scores"] for row in found[name]]) for name in config.positions}
    metrics = {
        "lengths": list(config.lengths),
        "ideal": ideal(texts_of_test(config), config),
        "models": models,
        "tuned": {name: [row["scores"] for row in rows] for name, rows in found.items() if name not in models},
        "sizes": {name: rows[0]["sizes"] for name, rows in found.items()},
    }
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": curves}


def headline(metrics, config):
    """One sentence: which share of the answers is right at the first and at the last length, and what could be."""
    rows = {name: ways[WHOLE] for name, ways in metrics["models"].items()} | metrics["tuned"]
    phrases = []
    for name, scores in rows.items():
        ends = [[of["right"][i] for of in scores] for i in (0, -1)]
        first, last = (None if None in end else mean(end) for end in ends)
        phrases.append(f"{name} {first:.2f}, {'refused' if last is None else f'{last:.2f}'}")
    best, n = metrics["ideal"]["right"], metrics["lengths"]
    return (
        f"share of answers that are right after {n[0]} and after {n[-1]} tokens, trained at {n[0]}: "
        f"{'; '.join(phrases)}; what can be known {best[0]:.2f}, {best[-1]:.2f}"
    )
