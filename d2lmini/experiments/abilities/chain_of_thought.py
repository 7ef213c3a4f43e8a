"""Chapter 18: does it help a GPT to write steps before an answer?

Small GPTs learn to add several numbers, characters being their tokens (`addition`). One writes the answer at once, one
the running sums before it. Three more tell what the steps are good for: one that is given a filler token in the place
of each character of the steps, and so as much computation; one that learns from steps half of which are those of
another question; and one that writes the answer at once but is trained with as many FLOPs as the one with steps. All
the others see equally many examples, drawn anew in every step. Measured by the number of summands, more than in the
training too: the likeliest response, and samples that vote (self-consistency); and what a model answers to false steps.

Source: Wei et al. 2022 and Nye et al. 2021 for steps; Wang et al. 2023 for votes; Goyal et al. 2024 and Pfau et al.
2024 for fillers; Lee et al. 2024 for sums by a small GPT.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

import torch

from d2lmini.experiments.abilities import addition, fresh_data
from d2lmini.experiments.abilities.addition import Sums
from d2lmini.experiments.abilities.addition_exam import SPARE, examine, falsify, show, test_questions
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.scaling import gpt_training_flops


@dataclass(frozen=True)
class Contestant:
    """What a GPT learns to write: one of `addition.FORMS`.

    In a share ``wrong`` of its examples the steps are those of another question. ``flops_of`` is the form that the
    steps of its training pay for; None: it sees as many examples as all.
    """

    name: str
    form: str
    wrong: float = 0.0
    flops_of: str | None = None


@dataclass(frozen=True)
class Config:
    """Settings.

    Training has ``summands`` of ``digits`` digits, a test also ``longer``. Of each number of summands ``questions``
    are answered greedily, and the first ``voted`` of them by ``samples`` samples at each of the ``temperatures``, if
    any, of which each of ``votes`` make a vote. Of ``shown`` questions of each number in ``shown_summands`` all
    samples at the last temperature are written down.
    """

    digits: int = 2
    summands: tuple = (2, 3, 4, 5, 6)
    longer: tuple = (7, 8)
    contestants: tuple = (
        Contestant("steps", "steps"),
        Contestant("answer alone", "answer"),
        Contestant("answer alone, as many FLOPs", "answer", flops_of="steps"),
        Contestant("filler", "filler"),
        Contestant("half of the steps wrong", "steps", wrong=0.5),
    )
    num_hiddens: int = 96
    num_heads: int = 4
    num_blks: int = 3
    batch_size: int = 96
    steps: int = 2_400
    checks: int = 4
    lr: float = 3e-3
    lr_matrices: float = 0.02
    decay: float = 0.5
    questions: int = 400
    voted: int = 100
    samples: int = 20
    votes: tuple = (1, 5, 20)
    temperatures: tuple = (0.5, 1.0)
    shown: int = 3
    shown_summands: tuple = (4, 6)
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), digits=1, summands=(2, 3), longer=(4,),
        contestants=Config().contestants[:1] + Config().contestants[2:],
        num_hiddens=16, num_heads=2, num_blks=1, batch_size=8, steps=6, checks=2, questions=6, voted=4, samples=4,
        votes=(1, 3), shown=1, shown_summands=(3,),
    ),
    # sums of digits are learned in seconds
    "cpu": replace(
        Config(), digits=1, summands=(2, 3, 4, 5), longer=(6,),
        contestants=tuple(Config().contestants[i] for i in (0, 1, 3)),
        num_hiddens=64, num_blks=2, batch_size=64, steps=500, checks=2, questions=200, voted=50, temperatures=(1.0,),
        shown_summands=(3, 5),
    ),
    "laptop": Config(),
    # the laptop's models that tell steps from luck, with further seeds
    "seeds": replace(
        Config(), contestants=Config().contestants[:3], temperatures=(), voted=1, shown_summands=(), seeds=(1, 2)
    ),
    "full": replace(
        Config(), digits=3, summands=tuple(range(2, 11)), longer=(11, 12, 14, 16), num_hiddens=256, num_heads=8,
        num_blks=6, batch_size=512, steps=30_000, checks=10, questions=2_000, voted=500, samples=40,
        votes=(1, 5, 20, 40), shown_summands=(4, 8, 10), seeds=(0, 1, 2),
    ),
}  # fmt: skip


class Adder(GPT):
    """A `GPT` over the characters of sums."""

    def __init__(self, config):
        sums = sums_of(config)
        model = replace(
            GPT_CONFIGS["modern"], vocab_size=len(addition.CHARACTERS), dropout=0.0, num_hiddens=config.num_hiddens,
            num_heads=config.num_heads, num_blks=config.num_blks, max_len=sums.length("steps", sums.longest) + SPARE,
        )  # fmt: skip
        super().__init__(model, config.lr)
        self.settings = config

    def configure_optimizers(self):
        return fresh_data.optimizer_of(self, self.settings)


def check(config):
    """Raises ValueError where a setting would be found wrong only after hours of training, or never."""
    if not config.contestants:
        raise ValueError("there is no contestant, expected one at least")
    for contestant in config.contestants:
        for key, forms in (("form", addition.FORMS), ("flops_of", (*addition.FORMS, None))):
            if getattr(contestant, key) not in forms:
                raise ValueError(
                    f"{key} of {contestant.name!r} is {getattr(contestant, key)!r}, expected one of "
                    f"{', '.join(map(str, forms))}"
                )
        if not 0 <= contestant.wrong <= 1:
            raise ValueError(f"wrong of {contestant.name!r} is {contestant.wrong}, expected a share from 0 to 1")
    if not config.votes or not all(1 <= n <= config.samples for n in config.votes):
        raise ValueError(f"votes are {config.votes}, expected each from 1 to the {config.samples} samples")
    if not 1 <= config.voted <= config.questions:
        raise ValueError(f"voted is {config.voted}, expected 1 to the {config.questions} questions")


def sums_of(config):
    """The `Sums` that a configuration asks for."""
    return Sums(config.digits, max(config.summands + config.longer))


def example_flops(model, sums, form, nums):
    """Floating-point operations that one example of a training needs on average, forward and backward.

    Of attention what each token may see; padding is not counted.
    """
    # the end is not read
    lengths = [sums.length(form, num) - 1 for num in nums]
    return mean(gpt_training_flops(model.config, T, context=T, causal=True) for T in lengths)


def steps_of(contestant, config, model, sums):
    """Steps of the training of a contestant."""
    if contestant.flops_of is None:
        return config.steps
    cost = {form: example_flops(model, sums, form, config.summands) for form in (contestant.form, contestant.flops_of)}
    return round(config.steps * cost[contestant.flops_of] / cost[contestant.form])


def learn(contestant, config, seed, device, parts, name):
    """Trains a contestant and examines it: a dict for JSON."""
    torch.manual_seed(seed)
    model, sums = Adder(config), sums_of(config)
    recipe = replace(config, steps=steps_of(contestant, config, model, sums))

    def draw(size):
        return sums.batch(size, config.summands, contestant.form, contestant.wrong)

    history = fresh_data.fit(model, draw, recipe, device, seed, parts, name)
    seconds = [b - a for a, b in pairwise([0.0, *history["seconds"]])]
    tests, shown = {}, []
    for num in config.summands + config.longer:
        tests[str(num)], drawn = examine(model, contestant.form, sums, num, config, seed)
        if num in config.shown_summands:
            shown += show(test_questions(sums, num, config.questions)[: config.voted], drawn, config.shown)
    examples = len(history["step"]) * config.batch_size
    with_steps = contestant.form == "steps"
    return {
        "tests": tests,
        "falsified": {str(n): falsify(model, sums, n, config) for n in config.summands if n > 2}
        if with_steps
        else None,
        "shown": shown,
        "parameters": model.num_parameters,
        "examples": examples,
        "flops": examples * example_flops(model, sums, contestant.form, config.summands),
        "step_s": round(median(seconds), 4),
        "curves": summaries.curves(history),
    }


def run(config, device, parts=None):
    """Trains every contestant with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``models``: of each contestant ``parameters``, ``examples`` and ``flops`` of the
        training, ``shown`` as `show` of the first seed, and lists over the seeds: ``tests``, by number of summands what
        `examine` tells, ``falsified``, by number of summands what `falsify` does, None without steps, and ``step_s``;
        ``width``: digits of every number that is written) and ``curves`` of each training: ``step`` and ``train_loss``,
        of what is written alone.

    Raises:
        ValueError: see `check`.
    """
    check(config)
    parts = parts or Parts()
    first = ("parameters", "examples", "flops", "shown")
    models, curves = fresh_data.contest(learn, config, device, parts, first, ("tests", "falsified", "step_s"))
    metrics = {"models": models, "width": sums_of(config).width}
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": curves}


def headline(metrics, config):
    """Accuracy on the most summands of the training, and what votes change, in a sentence."""
    num, accuracies = str(config.summands[-1]), []
    for contestant in config.contestants:
        tests = [tests[num] for tests in metrics["models"][contestant.name]["tests"]]
        accuracies.append(f"{contestant.name} {100 * mean(test['greedy']['accuracy'] for test in tests):.1f}")
    right = f"sums of {num} numbers that are right, in %: {', '.join(accuracies)}"
    if not config.temperatures:
        return right
    hot, few, many = str(config.temperatures[-1]), str(config.votes[0]), str(config.votes[-1])
    main = config.contestants[0]
    voted = [
        100 * mean(tests[num]["votes"][hot][n]["accuracy"] for tests in metrics["models"][main.name]["tests"])
        for n in (few, many)
    ]
    return f"{right}; {main.name}, sampled at temperature {hot}: {voted[0]:.1f}, by {many} votes {voted[1]:.1f}"
