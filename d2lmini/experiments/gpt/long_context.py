"""Chapter 09: what a GPT makes of texts that are longer than those of its training.

GPTs of one design are trained at a context of ``max_len`` tokens and differ in how they tell positions. Each is then
scored at several lengths *on the same tokens*: the last ``scored`` ones of passages of a text that it has not seen,
with more and more before them. So what changes from length to length is the context alone.

A model of rotary positions is also scored with positions interpolated and with another base, and after a short training
at a longer length with either, with neither, and (a control) after as much more training at the old one. A model that
is trained at the longer length from the beginning on as many tokens tells what more context can bring.

Source: Press et al. 2022 (ALiBi); Chen et al. 2023 (interpolation); Peng et al. 2024 (the base); Kazemnejad et al. 2023
(no positions).
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from d2lmini.experiments.gpt import language
from d2lmini.experiments.gpt.gpt_gutenberg import encoded, read
from d2lmini.experiments.gpt.language import Recipe
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
from d2lmini.rotation import ROTATIONS, StretchedRotary


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe, whose ``max_len`` is the length of the training; lengths count tokens.

    ``lengths`` are those of the test, the first of them ``max_len``; ``passages`` of the last one are scored, in their
    last ``scored`` tokens, and by place in groups of ``group`` places. ``longer`` is the length at which models are
    trained for ``tune_steps`` more, with ``tune_lr`` times the learning rates.
    """

    text: str = "gutenberg"
    val_share: float = 0.05
    vocab_size: int = 1024
    positions: tuple = tuple(POSITIONS)
    lengths: tuple = (128, 256, 512, 1024)
    passages: int = 96
    scored: int = 64
    group: int = 32
    longer: int = 512
    tune_steps: int = 100
    tune_lr: float = 0.3
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=replace(
        GPT_CONFIGS["modern"], vocab_size=1024, max_len=128, num_hiddens=128, num_heads=4, num_blks=4, dropout=0.0
    ),
    batch_size=32, steps=1_000, checks=4, val_batches=10, final_batches=20, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(GPT_CONFIGS["modern-toy"], max_len=8, num_hiddens=16, num_heads=2), text="book",
        batch_size=4, steps=2, checks=1, val_batches=1, precision="float32", val_share=0.02, vocab_size=280,
        lengths=(8, 16, 32), passages=3, scored=4, group=4, longer=16, tune_steps=2,
    ),
    # a short text: the book's own
    "cpu": replace(
        _LAPTOP, model=replace(GPT_CONFIGS["modern-toy"], max_len=32), text="book", steps=200, checks=2,
        precision="float32", val_share=0.1, vocab_size=384, lengths=(32, 64, 128, 256), passages=64, scored=16,
        group=16, longer=128, tune_steps=30,
    ),
    "laptop": _LAPTOP,
    # four times through the text, and lengths as in the papers
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=512, num_hiddens=512, num_heads=8, num_blks=8, dropout=0.1),
        batch_size=64, steps=700, checks=7, lengths=(512, 1024, 2048, 4096), passages=200, scored=256, group=128,
        longer=2048,
    ),
}  # fmt: skip


def passages(tokens, length, number):
    """Evenly spread passages of a text: (number, length + 1), the last token of each being a target alone.

    Raises:
        ValueError: the text is shorter than one of them.
    """
    windows = language.Windows(tokens, length).windows  # (N - length, length + 1)
    return windows[torch.linspace(0, len(windows) - 1, number).long()].long()


@torch.no_grad()
def losses_at(model, texts, length):
    """Losses in nats of the last tokens of passages, read from ``length`` tokens: (passages, length), float64.

    Whatever the length, the last columns are losses of the same tokens.
    """
    X, Y = texts[:, -length - 1 : -1], texts[:, -length:]
    device, rows = model.embedding.weight.device, []
    for part in language.batched(range(len(X)), max(1, 8_192 // length)):  # a slice of a range is a range
        i = slice(part.start, part.stop)
        logits = model(X[i].to(device))  # (b, length, V)
        rows.append(F.cross_entropy(logits.transpose(1, 2), Y[i].to(device), reduction="none").cpu().double())
    return torch.cat(rows)


def score(model, texts, config, rotation=None, factor=None):
    """What a model makes of each length: dict for JSON, with a list over ``config.lengths`` for each name.

    Args:
        model: a `LongLearner`; as it was afterwards.
        texts: `passages`.
        config: settings.
        rotation: None, or one of `ROTATIONS`: how rotary positions are stretched at lengths above that of the training.
        factor: by how much; None: by length over that of the training.

    Returns:
        ``loss`` of the last ``scored`` tokens in nats; ``more``, by how much it is above that at the first length, and
        ``error``, the standard error of that difference over passages; ``by_place``, for each length the losses of
        groups of places. A length that the model refuses has None, and why is in ``refused``.
    """
    columns, refused = at_lengths(
        model, config.lengths, lambda length: losses_at(model, texts, length), rotation, factor
    )
    first, result = None, {"loss": [], "more": [], "error": [], "by_place": [], "refused": refused}
    for losses in columns:
        if losses is None:
            for name in ("loss", "more", "error", "by_place"):
                result[name].append(None)
            continue
        last = losses[:, -config.scored :].mean(1)  # (passages,)
        first = last if first is None else first
        more = last - first
        result["loss"].append(last.mean().item())
        result["more"].append(more.mean().item())
        result["error"].append((more.std() / math.sqrt(len(more))).item())
        places = losses.mean(0).split(config.group)
        result["by_place"].append([round(part.mean().item(), 6) for part in places])
    return result


def score_window(model, texts, config):
    """As `score`, with attention to no more than the last ``config.lengths[0]`` positions."""
    model.window = config.lengths[0]
    try:
        return score(model, texts, config)
    finally:
        model.window = None


def run(config, device, parts=None):
    """Trains and scores every model; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: ``models[positions][way]``, what `score` tells, where the way is `WHOLE`, `WINDOW` or,
        of rotary positions, one of `ROTATIONS` but the first; ``tuned[name]``, of rotary positions after more training;
        ``longer``, of rotary positions trained at ``config.longer`` alone; ``sizes`` and times of each training; and
        ``curves`` of each training, and ``data``.

    Raises:
        ValueError: the first length of the test is not that of the training, or ``longer`` is none of them.
    """
    check_lengths(config)
    parts, seed, made = parts or Parts(), config.seeds[0], {}

    def text():  # only if a part is not finished yet
        if "text" not in made:
            tokenizer, *ids = encoded(read(config.text, config.val_share), config.vocab_size)
            made["text"] = len(tokenizer), ids, passages(ids[1], config.lengths[-1], config.passages)
        return made["text"]

    def train(name, recipe, positions, begin=None, rotary=None):
        vocab_size, ids, _ = text()
        model = replace(recipe.model, vocab_size=vocab_size, positions=POSITIONS[positions])
        recipe = replace(recipe, model=model)

        def make(recipe):
            model = LongLearner(recipe, positions)
            if begin is not None:
                model.load_state_dict(begin.state_dict())
            model.rotary = rotary or model.rotary
            return model

        model, history = language.train(recipe, *ids, device, seed, parts=parts, name=name, make=make)
        return model, {
            "curves": summaries.curves(history, *language.CURVES), "sizes": language.measures(model, history, recipe)
        }  # fmt: skip

    def trained(positions):  # a training that is finished is read from its checkpoint
        if positions not in made:
            made[positions] = train(positions, config, positions)
        return made[positions]

    def compare(positions):
        model, about = trained(positions)
        texts = text()[2]
        scores = {WHOLE: score(model, texts, config)}
        if positions != "learned":
            scores[WINDOW] = score_window(model, texts, config)
        if positions == "rotary":
            scores |= {rotation: score(model, texts, config, rotation) for rotation in ROTATIONS[1:]}
        return about | {"scores": scores}

    def tune(name, length, rotation):
        factor = length / config.model.max_len
        begin, rotary = trained("rotary")[0], StretchedRotary(factor, rotation)
        model, about = train(name, tuning(config, length), "rotary", begin, rotary)
        return about | {"scores": score(model, text()[2], config, rotation, factor)}

    def at_once():
        model, about = train("longer", replace(tuning(config, config.longer), **_of_training(config)), "rotary")
        return about | {"scores": score(model, text()[2], config)}

    done = {name: parts(name, compare, name) for name in config.positions}
    tuned = {}
    if "rotary" in config.positions:
        jobs = {f"{rotation}, {length}": (length, rotation) for length, rotation in tunings(config)}
        for i, (name, job) in enumerate(jobs.items()):
            tuned[name] = parts(f"tuned-{i}", tune, f"tuned-{i}", *job)
    longer = parts("longer", at_once)
    everything = done | {f"rotary, then {name}": record for name, record in tuned.items()} | {"longer": longer}
    metrics = {
        "lengths": list(config.lengths),
        "models": {name: record["scores"] for name, record in done.items()},
        "tuned": {name: record["scores"] for name, record in tuned.items()},
        "longer": longer["scores"],
        "sizes": {name: record["sizes"] for name, record in everything.items()},
    }
    metrics["headline"] = headline(metrics, config)
    curves = {name: record["curves"] for name, record in everything.items()}
    return {"metrics": metrics, "curves": curves, "data": language.text_checksums(config.text)}


def _of_training(config):
    return {name: getattr(config, name) for name in ("steps", "checks", "lr", "lr_matrices")}


def headline(metrics, config):
    """One sentence: how the loss of the same tokens changes from the first length to the one of more training."""
    first, at = config.lengths[0], config.lengths.index(config.longer)
    rows = {name: ways[WHOLE] for name, ways in metrics["models"].items()}
    rows |= {f"rotary {rotation}": metrics["models"].get("rotary", {}).get(rotation) for rotation in ROTATIONS[1:]}
    rows |= {f"tuned ({name})": scores for name, scores in metrics["tuned"].items()}
    rows[f"trained at {config.longer}"] = metrics["longer"]
    more = {name: scores["more"][at] for name, scores in rows.items() if scores}
    differences = ", ".join(
        f"{name} {'refused' if difference is None else f'{difference:+.3f}'}" for name, difference in more.items()
    )
    return (
        f"trained at {first} tokens, loss in nats at {config.longer} less that at {first}, of the same tokens: "
        f"{differences}"
    )
