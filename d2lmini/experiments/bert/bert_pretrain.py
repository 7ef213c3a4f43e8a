"""Chapter 13: what a batch teaches an encoder: masked tokens, the next token, replaced tokens, at equal compute.

All but one have the same encoder, a BERT in a form of today (`bert_config.MODERN`), the same text in the same order,
and nearly the same floating-point operations (`pretraining.flops` says what counts); so they take unlike numbers of
steps. One has BERT's own form, which comes a quarter as far below frequencies. The text has no capitals: film
reviews, which such an encoder meets next, have none. Losses of unlike guesses do not compare. So it is measured how far
each comes below what frequencies alone give, in bits, and how well a logistic regression does on each encoder, frozen,
and on the one that was never trained.
"""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

import torch

from d2lmini.data import registry
from d2lmini.data.sentiment import SentencePolarity
from d2lmini.experiments.bert import information, lower_case, pretraining, probing
from d2lmini.experiments.bert.pretraining import Objective, Recipe
from d2lmini.experiments.gpt import language
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_in_checks
from d2lmini.lab.parts import Parts
from d2lmini.models.bert_config import MODERN, BERTConfig
from d2lmini.training import CheckpointError
from d2lmini.training.schedules import WarmupLinear

OBJECTIVES = {
    "masked": Objective(),
    "causal": Objective("causal"),
    "replaced": Objective("replaced"),
    "masked, 40 %": Objective(rate=0.4),
    "masked, BERT's form": Objective(published=True),
    "always [MASK]": Objective(mask_share=1.0, random_share=0.0),
}


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe; the window T is the model's ``max_len``, and V its ``vocab_size``.

    ``contestants`` are keys of `OBJECTIVES`, the first one "masked". Checks score ``val_windows`` windows. With
    ``polarity`` film reviews probe the encoders, by each of ``shares`` of the labels, small ones ``draws`` times. So do
    ``order_sentences`` of the validation text, whether words are exchanged, three in five to train on. Of ``shown``
    sentences the likeliest ``top`` guesses of each place are kept.
    """

    text: str = "wikitext2_train_reordered"
    val_share: float = 0.05
    contestants: tuple = ("masked", "causal", "replaced", "masked, 40 %", "masked, BERT's form")
    val_windows: int = 300
    polarity: bool = True
    shares: tuple = (0.01, 0.1, 1.0)
    draws: int = 5
    order_sentences: int = 5_000
    shown: int = 5
    top: int = 6
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=BERTConfig(
        vocab_size=8192, max_len=128, num_hiddens=192, num_heads=3, num_blks=4, dropout=0.0, use_pooler=False,
        **MODERN,
    ),
    batch_size=32, steps=1_600, checks=8, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(_LAPTOP.model, vocab_size=600, max_len=24, num_hiddens=16, num_heads=2, num_blks=2),
        generator=8, batch_size=4, steps=6, checks=2, precision="float32", text="book", val_share=0.3, val_windows=8,
        polarity=False, shares=(0.5, 1.0), order_sentences=40, shown=2, top=3,
        contestants=("masked", "causal", "replaced"),
    ),
    # a short text: the book's own
    "cpu": replace(
        _LAPTOP, model=replace(_LAPTOP.model, vocab_size=1024, max_len=64, num_hiddens=64, num_heads=2, num_blks=2),
        generator=32, batch_size=16, steps=240, checks=4, precision="float32", text="book", val_share=0.2,
        val_windows=60, polarity=False, shares=(1.0,), order_sentences=1_000,
        contestants=("masked", "causal", "replaced"),
    ),
    # five trainings of 8 to 16 minutes on a core
    "laptop": _LAPTOP,
    # for the page: what believes from both sides, and what believes from the left
    "page": replace(_LAPTOP, contestants=("masked", "causal"), steps=2_000),
    # twenty times through the text, at a size of Turc et al. 2019
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=512, num_heads=8, dropout=0.1), generator=128,
        batch_size=128, steps=3_000, checks=20, contestants=tuple(OBJECTIVES), val_windows=1_000,
    ),
}  # fmt: skip


class Texts:
    """Documents, tokenizer and windows of a configuration, made when they are asked for."""

    def __init__(self, config):
        self.config = config

    @cached_property
    def documents(self):
        return lower_case.read(self.config.text, self.config.val_share)

    @cached_property
    def tokenizer(self):
        return lower_case.wordpiece(self.documents[0], self.config.model.vocab_size)

    @cached_property
    def windows(self):
        config, seed = self.config, self.config.seeds[0]
        sizes = config.model.max_len, config.batch_size, config.val_windows
        return lower_case.Windows(self.tokenizer, *self.documents, *sizes, seed)

    @cached_property
    def recipe(self):
        """The configuration with the V that came out."""
        model = replace(self.config.model, vocab_size=self.tokenizer.get_vocab_size())
        return replace(self.config, model=model)


def steps_of(objective, recipe):
    """Steps at which an objective has cost what masking costs in ``recipe.steps``; as many for each check."""
    share = pretraining.flops(OBJECTIVES["masked"], recipe) / pretraining.flops(objective, recipe)
    return recipe.checks * max(1, round(recipe.steps * share / recipe.checks))


def train(objective, texts, device, parts, name):
    """Trains an encoder by an objective; returns the learner, in evaluation mode, and the trainer's history."""
    recipe, seed = texts.recipe, texts.config.seeds[0]
    steps = steps_of(objective, recipe)
    torch.manual_seed(seed)
    model = pretraining.learner(objective, recipe)
    data = texts.windows.for_objective(objective.batches(texts.windows), steps // recipe.checks)
    schedule = WarmupLinear(round(recipe.warmup * steps), steps, round(recipe.decay * steps))
    return model, fit_in_checks(model, data, device, recipe, schedule, seed=seed, parts=parts, name=name)


def pretrained(config, device, parts=None, name="pretraining"):
    """A BERT after masked pretraining, and its tokenizer; what is finished is not trained again.

    Args:
        config: a `Config`, as those of `PRESETS`.
        device: ``torch.device``.
        parts: the `Parts` of the run; in its folder are kept checkpoints, and in the end the weights.
        name: of the part.

    Returns:
        `BERT` on the CPU, in evaluation mode, and a ``tokenizers.Tokenizer``, which takes capitals off.

    Raises:
        Unfinished: the time is up.
        CheckpointError: the folder says that it is trained, but has no such weights.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_model, save_model

    parts, texts, made = parts or Parts(), Texts(config), []
    path = parts.folder and parts.folder / f"{name}.safetensors"

    def work():
        model, history = train(OBJECTIVES["masked"], texts, device, parts, name)
        made.append(model.cpu())
        if path:
            save_model(model, str(path))
        return {"steps": len(history["step"]), "val_loss": history["val_loss"][-1]}

    parts(name, work)
    model = made[0] if made else pretraining.learner(OBJECTIVES["masked"], texts.recipe)
    if not made:
        try:
            load_model(model, str(path))
        except (OSError, RuntimeError, SafetensorError) as error:
            raise CheckpointError(f"{path} has no weights of this encoder ({error}): move the folder away") from error
    return model.bert.eval(), texts.tokenizer


def probes(encoder, texts, causal=False):
    """What `probing.probe` finds of the tasks of a configuration: dict from a task."""
    config, seed = texts.config, texts.config.seeds[0]
    asked = probing.exchanged(texts.documents[1], config.order_sentences, seed)
    cuts = 3 * len(asked) // 5, 4 * len(asked) // 5
    tasks = {"order": (asked[: cuts[0]], asked[cuts[0] : cuts[1]], asked[cuts[1] :])}
    if config.polarity:
        reviews = SentencePolarity(texts.tokenizer, max_len=config.model.max_len, fold=0, truncate=True)
        tasks["polarity"] = tuple(reviews.examples(split) for split in reviews.splits)
    return {
        name: probing.probe(encoder, texts.tokenizer, splits, config.shares, config.draws, causal)
        for name, splits in tasks.items()
    }


def compete(objective, texts, device, parts, name):
    """Trains by an objective, and measures all: a dict for JSON with ``metrics``, ``curves`` and ``guesses``."""
    model, history = train(objective, texts, device, parts, name)
    recipe, config, windows = texts.recipe, texts.config, texts.windows
    steps, cost = len(history["step"]), pretraining.flops(objective, recipe)
    seconds = [0.0, *history["seconds"]]
    times = [after - before for before, after in pairwise(seconds)]
    metrics = {
        "objective": asdict(objective),
        "steps": steps,
        "tokens_seen": steps * recipe.batch_size * recipe.model.max_len,
        "flops_per_window": cost,
        "flops": cost * steps * recipe.batch_size,
        "parameters": model.num_parameters,
        "train_s": round(seconds[-1], 3),
        "step_s": round(median(times), 4),
        **information.taught(
            objective, recipe, information.score(model, objective, windows), information.unigram(windows)
        ),
    }
    causal = objective.kind == "causal"
    if not causal:
        metrics["as_masked"] = information.masked_score(model, OBJECTIVES["masked"], windows)
        metrics["as_always_masked"] = information.masked_score(model, OBJECTIVES["always [MASK]"], windows)
    metrics["probes"] = probes(model.bert, texts, causal)
    said = []
    if objective.kind != "replaced":
        said = probing.plain_sentences(texts.tokenizer, texts.documents[1], config.shown)
        said = probing.guesses(model, texts.tokenizer, said, config.top)
    extra = ("detection", "generation") if objective.kind == "replaced" else ()
    checks = ("val_step", *(f"val_{key}" for key in ("loss", "acc", *extra)))
    return {"metrics": metrics, "curves": summaries.curves(history, *checks), "guesses": said}


def run(config, device, parts=None):
    """Trains every contestant; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: ``contestants``, what `compete` tells of each; ``untrained``, the probes of an encoder
        that was not; ``unigram``; ``guesses``, of each of a few sentences what `probing.guesses` tells of the masked
        model, with the same of the causal one as ``from_left``; and ``curves`` of each, and ``data``.

    Raises:
        ValueError: a contestant is unknown, or the first one is not "masked".
    """
    unknown = set(config.contestants) - OBJECTIVES.keys()
    if unknown or config.contestants[:1] != ("masked",):
        raise ValueError(
            f"contestants are {config.contestants}, expected 'masked' and others of {', '.join(OBJECTIVES)}"
        )
    parts, texts = parts or Parts(), Texts(config)

    def untrained():
        torch.manual_seed(config.seeds[0])
        encoder = pretraining.learner(OBJECTIVES["masked"], texts.recipe).bert.to(device).eval()
        return {"probes": probes(encoder, texts), "unigram": information.unigram(texts.windows)}

    by_contestant = {}
    for number, name in enumerate(config.contestants):
        folder = f"{number:02}"
        by_contestant[name] = parts(folder, compete, OBJECTIVES[name], texts, device, parts, folder)
    before = parts("untrained", untrained)
    said = by_contestant["masked"]["guesses"]
    if "causal" in by_contestant:
        left = ({key: guess[key] for key in guess if key != "tokens"} for guess in by_contestant["causal"]["guesses"])
        said = [guess | {"from_left": other} for guess, other in zip(said, left, strict=True)]
    metrics = {
        "contestants": {name: record["metrics"] for name, record in by_contestant.items()},
        "untrained": before["probes"],
        "unigram": before["unigram"],
        "guesses": said,
    }
    task = "polarity" if config.polarity else "order"
    rows = [
        f"{name} {scores['bits_per_batch']:,.0f} bits, {scores['probes'][task]['mean'][-1]:.1%}"
        for name, scores in metrics["contestants"].items()
    ]
    metrics["headline"] = (
        f"what a batch tells beyond frequencies after equal compute, and a linear probe of {task} (untrained "
        f"{before['probes'][task]['mean'][-1]:.1%}): {'; '.join(rows)}"
    )
    data = language.text_checksums(config.text)
    if config.text.startswith("wikitext2"):
        data |= registry.checksums("wikitext2", ["valid.txt"])
    if config.polarity:
        data |= registry.checksums("rt_polarity", [file.name for file in registry.get("rt_polarity").files])
    return {
        "metrics": metrics,
        "curves": {name: record["curves"] for name, record in by_contestant.items()},
        "data": data,
    }
