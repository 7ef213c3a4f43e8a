"""Chapter 19: a model that sums learns from "right" or "wrong" alone, next to one that is shown right answers.

The model of chapter 18 first imitates right answers, and is stopped early. From these weights it goes on in several
ways, each with as many FLOPs: by group-relative policy gradients, whose reward is 1 if the sum is right and else 0; by
the same with a coin for the reward; and by imitating further right answers. Measured on questions that none has seen:
how many samples are right, the chance that one of k samples is (does it learn, or does it only give more often what it
could give before?), and the entropy and length of answers.

Source: Shao et al. 2024, "DeepSeekMath", for the method; Yue et al. 2025, "Does reinforcement learning really
incentivize reasoning capacity", for the question.
"""

from dataclasses import dataclass, replace
from statistics import mean

from d2lmini.experiments.abilities import addition
from d2lmini.experiments.real_model.checked_answers import chances
from d2lmini.experiments.real_model.reward_training import Start
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts

REWARDS = "right", "coin", None


@dataclass(frozen=True)
class Contestant:
    """A way to go on: by a ``reward``, "right" or "coin", or by imitation (None).

    ``beta`` is the price of the KL divergence from the start, ``part`` the share of the steps that it gets.
    """

    name: str
    reward: str | None = None
    beta: float = 0.0
    part: float = 1.0


@dataclass(frozen=True)
class Config:
    """Settings.

    A question has ``summands`` of ``digits`` digits, an answer the ``form`` that `addition` gives it. The start
    imitates batches of ``batch_size`` until, at a look every ``look`` steps, one of the shares ``starts`` of its
    samples is right; after ``longest`` steps it is an error. Rewards are learned for ``steps`` steps, each with a
    ``group`` of answers to each of ``questions`` questions, used ``reuse`` times. Learning rates are chapter 18's, for
    rewards times ``reward_lr``. They go to zero in the last share ``decay`` of the steps. Measured at ``checks`` steps,
    ever rarer, on ``tested`` questions; at both ends with ``samples`` samples of each of the first ``asked``, for the
    chances of ``ks``, and at the start at the ``temperatures``, too.
    """

    form: str = "answer"
    digits: int = 2
    summands: int = 2
    num_hiddens: int = 64
    num_heads: int = 4
    num_blks: int = 2
    batch_size: int = 64
    lr: float = 3e-3
    lr_matrices: float = 0.02
    starts: tuple = (0.05, 0.25)
    look: int = 10
    longest: int = 2_000
    contestants: tuple = (
        Contestant("rewards", "right"),
        Contestant("coins", "coin", part=0.3),
        Contestant("imitation"),
    )
    steps: int = 150
    questions: int = 32
    group: int = 16
    reuse: int = 1
    clip: float = 0.2
    reward_lr: float = 0.1
    warmup: int = 5
    decay: float = 0.5
    checks: int = 16
    tested: int = 400
    asked: int = 200
    samples: int = 64
    ks: tuple = (1, 2, 4, 8, 16, 32, 64)
    temperatures: tuple = (0.5, 0.25)
    seeds: tuple = (0, 1, 2)


PRESETS = {
    "smoke": replace(
        Config(), digits=1, summands=3, num_hiddens=16, num_heads=2, num_blks=1, batch_size=16, starts=(0.02,), look=5,
        contestants=(*Config().contestants, Contestant("near the start", "right", 0.1)), steps=4, questions=6, group=4,
        reuse=2, checks=2, tested=40, asked=12, samples=8, ks=(1, 4, 8), seeds=(0, 1),
    ),
    # sums of digits are learned in seconds
    "cpu": replace(
        Config(), digits=1, summands=3, num_hiddens=32, starts=(0.25,), steps=100, questions=16, checks=8, tested=100,
        asked=50, samples=32, ks=(1, 4, 16, 32), seeds=(0,),
    ),
    "laptop": Config(),
}  # fmt: skip


def check(config):
    """Raises ValueError where a setting would be found wrong only after minutes, or never."""
    if config.form not in addition.FORMS:
        raise ValueError(f"form is {config.form!r}, expected one of {', '.join(addition.FORMS)}")
    if not config.contestants or config.contestants[0].reward is None:
        raise ValueError("the first contestant has no reward, expected one: imitation gets as many FLOPs as it took")
    for contestant in config.contestants:
        if contestant.reward not in REWARDS:
            raise ValueError(
                f"reward of {contestant.name!r} is {contestant.reward!r}, expected one of "
                f"{', '.join(map(str, REWARDS))}"
            )
    if not config.ks or not all(1 <= k <= config.samples for k in config.ks):
        raise ValueError(f"ks are {config.ks}, expected each from 1 to the {config.samples} samples")
    if not config.starts or not all(0 < share < 1 for share in config.starts):
        raise ValueError(
            f"starts are {config.starts}, expected shares between 0 and 1: rewards that are all 0 teach nothing"
        )
    if not 2 <= config.asked <= config.tested:
        raise ValueError(f"asked is {config.asked}, expected 2 to the {config.tested} tested questions")


def run_one(config, share, seed):
    """One start and what becomes of it: dict for JSON, with ``start`` and ``ways``, by name."""
    start = Start(config, share, seed)
    asked = start.tests[: config.asked]

    def draw(model, salt, temperature=1.0):
        return start.draw(model, asked, config.samples, temperature, salt).right

    never = ~draw(start.model, 1).any(1)  # other samples than those that count, since they choose the questions

    def ends(model):
        right, new = draw(model, 2), None
        if never.any():
            new = {
                "right": right[never].cpu().double().mean().item(),
                "solved": right[never].any(1).cpu().double().mean().item(),
            }
        return {"chances": chances(right, config.ks), "never": new}

    first = {
        "steps": start.steps,
        "flops": start.flops,
        "tests": start.measure(start.model),
        "cooler": {str(T): draw(start.model, 3, T).cpu().double().mean().item() for T in config.temperatures},
        "number_never": int(never.sum()),
    }
    ways, budget = {}, None
    for contestant in config.contestants:
        model, record = start.learn(contestant, budget)
        budget = budget or record["flops"]
        ways[contestant.name] = record | ends(model)
    return {"start": first | ends(start.model), "ways": ways}


def run(config, device, parts=None):
    """Goes on from every start in every way, with every seed; see `d2lmini.lab` for the arguments.

    It computes on the CPU, whatever the device: the models are small.

    Returns:
        dict with ``metrics`` and ``curves``. Of the metrics ``starts`` has by share lists over the seeds: of the start
        ``steps``, ``flops``, ``tests`` (`Start.measure`), ``cooler``, by temperature the share of right samples,
        ``chances`` (`checked_answers.chances`), ``number_never``, how many questions had no right one in ``samples``
        samples, and ``never``, of further samples of these the share ``right`` and the share of questions ``solved`` by
        any (None: there is none). ``ways`` has by share and contestant the same lists of ``steps``, ``flops``,
        ``tests`` at the end, ``chances`` and ``never``. ``curves`` have of each training the tests and what was drawn.

    Raises:
        ValueError: see `check`, or a start is not reached.
    """
    check(config)
    parts, starts, ways, curves = parts or Parts(), {}, {}, {}
    for share in config.starts:
        rows = []
        for seed in config.seeds:
            rows.append(parts(f"{share:g}-{seed}", run_one, config, share, seed))
            for name, way in rows[-1]["ways"].items():
                curves[f"{share:g}, {name}, seed {seed}"] = {"tests": way["tests"], "seen": way.pop("seen")}
                way["tests"] = {key: values[-1] for key, values in way["tests"].items()}
        starts[f"{share:g}"] = summaries.columns([row["start"] for row in rows])
        ways[f"{share:g}"] = {
            contestant.name: summaries.columns([row["ways"][contestant.name] for row in rows])
            for contestant in config.contestants
        }
    metrics = {"starts": starts, "ways": ways}
    return {"metrics": metrics | {"headline": headline(metrics, config)}, "curves": curves}


def headline(metrics, config):
    """The chances of one sample and of many, before and after, in a sentence."""

    def told(record):
        ends = [f"{100 * mean(one['chance'][i] for one in record['chances']):.0f} % of {config.ks[i]}" for i in (0, -1)]
        return ", ".join(ends)

    lines = []
    for share, start in metrics["starts"].items():
        after = [f"{told(way)} after {name}" for name, way in metrics["ways"][share].items()]
        lines.append(f"{told(start)} at the start; {'; '.join(after)}")
    return f"right at least once in k samples: {' | '.join(lines)}"
