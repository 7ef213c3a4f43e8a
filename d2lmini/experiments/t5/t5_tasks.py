"""Chapter 14: one T5 for several tasks, each with its prefix, beside one model for each task.

The mixture is trained on batches in which tasks are drawn by T5's rule. Each task is also trained alone, twice: for as
many steps as the mixture, and for as many examples of the task as the mixture saw. All answers are written token by
token, greedily. In the end the mixture gets inputs with the prefix of another task, and with none.
"""

from collections import Counter
from dataclasses import dataclass, replace

from d2lmini.data import registry
from d2lmini.experiments.t5 import answer_scores, text_tasks, text_to_text
from d2lmini.experiments.t5.text_to_text import Recipe, Tokens
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.metrics import corpus_bleu, corpus_chrf
from d2lmini.models.t5_config import T5Config

FILES = {"sentiment": "rt_polarity", "tag": "wnut17"}
SAME_STEPS, SAME_EXAMPLES = "alone", "alone, as many examples"


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe.

    ``num_pairs`` are the sentences of the grammar. Training leaves out what has more than ``max_len`` tokens on a side;
    testing leaves out nothing. ``limit`` and ``temperature`` are those of `text_tasks.mixing_rates`. Up to ``tested``
    examples of each task are answered in ``answer_len`` tokens or less, ``swapped`` of them with the other prefixes;
    the answers to the first ``shown`` are kept.
    """

    tasks: tuple = ("translate", "summarise", "sentiment", "tag")
    num_pairs: int = 12_000
    vocab_size: int = 3_072
    max_len: int = 72
    limit: int | None = 8_192
    temperature: float = 1.0
    tested: int = 2_000
    answer_len: int = 40
    swapped: int = 200
    shown: int = 4
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=T5Config(
        num_hiddens=128, num_heads=4, head_size=32, num_blks=2, ffn_num_hiddens=384, ffn="geglu", dropout=0.0
    ),
    batch_size=32, steps=1_600, checks=4, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=16, num_heads=2, head_size=8, num_blks=1, ffn_num_hiddens=32),
        tasks=("translate", "summarise", "form"), batch_size=4, steps=6, checks=2, precision="float32", val_batches=1,
        num_pairs=1_000, vocab_size=400, tested=6, answer_len=6, swapped=3, shown=2,
    ),
    # what the grammar alone can ask
    "cpu": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=64, head_size=16, ffn_num_hiddens=192),
        tasks=("translate", "summarise", "form"), batch_size=32, steps=200, checks=2, precision="float32",
        val_batches=4, num_pairs=4_000, vocab_size=800, tested=200, swapped=60,
    ),
    "laptop": _LAPTOP,
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=256, num_heads=4, head_size=64, num_blks=4,
        ffn_num_hiddens=1_024, dropout=0.1), batch_size=64, steps=10_000, checks=10, num_pairs=48_000,
        vocab_size=8_000, max_len=128, limit=16_384, swapped=500,
    ),
}  # fmt: skip


def learn(config, tasks, tokens, rates, device, parts, name):
    """Trains on tasks at rates, a dict from their names; returns the model and what is written down of its training."""
    groups = [
        [text_tasks.pairs_of(tasks[task], split, tokens, config.max_len) for task in rates]
        for split in ("train", "val")
    ]
    data = text_to_text.Pairs(tokens, *groups, list(rates.values()), config)
    model, history = text_to_text.train(config, tokens, data, device, config.seeds[0], parts, name)
    steps = len(history["step"])
    measured = {
        "steps": steps,
        "examples": {task: round(rate * steps * config.batch_size) for task, rate in rates.items()},
        "train_s": round(history["seconds"][-1], 3),
        "parameters": model.num_parameters,
    }
    return model, {"measured": measured, "curves": summaries.curves(history, "val_step", "val_loss")}


def test(model, task, tokens, config, limit=None, prefix=None):
    """Answers to the test of a task: the texts, and what each adds to the sums of the score (N, 2)."""
    pairs = text_tasks.pairs_of(task, "test", tokens, prefix=prefix)[: limit or config.tested]
    answers = text_to_text.answers(model, tokens, [ids for ids, _ in pairs], config.answer_len)
    wanted = [answer for _, answer in task.examples["test"][: len(answers)]]
    return answers, [task.row(*pair) for pair in zip(answers, wanted, strict=True)]


def other_scores(task, answers):
    """What else is known of answers to a task: chrF and BLEU of translations, words shared of summaries."""
    wanted = [answer for _, answer in task.examples["test"][: len(answers)]]
    if task.name == "translate":
        return {"bleu": corpus_bleu(answers, wanted).value, "chrf": corpus_chrf(answers, wanted).value}
    if task.name == "summarise":
        return {
            "overlap": answer_scores.ratio(
                [answer_scores.overlap(*pair) for pair in zip(answers, wanted, strict=True)]
            )["score"]
        }
    return {"of_the_form": 100 * sum(text_tasks.kind_of(answer) == task.name for answer in answers) / len(answers)}


def swap(model, tasks, tokens, config):
    """What the mixture answers to inputs with each of the prefixes, and with none.

    Returns:
        dict from the task whose inputs they are to a dict from the task whose prefix they have ("none": none) to
        ``score`` on the task of the inputs, ``kinds``, how many answers are of which form (`text_tasks.kind_of`), and
        ``answers`` to the first inputs.
    """
    by_task = {}
    for name, task in tasks.items():
        by_task[name] = {}
        for other, prefix in [*((other, tasks[other].prefix) for other in tasks), ("none", "")]:
            answers, rows = test(model, task, tokens, config, config.swapped, prefix)
            by_task[name][other] = {
                "score": answer_scores.ratio(rows)["score"],
                "kinds": dict(Counter(map(text_tasks.kind_of, answers))),
                "answers": answers[: config.shown],
            }
    return by_task


def run(config, device, parts=None):
    """Trains the mixture, and each task alone twice; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``, ``curves`` of each training, and ``data``. Of the metrics, ``tasks`` has for each task
        its ``metric``, ``prefix``, ``train`` (examples), ``rate`` in the mixture, ``commonest`` (the score of the
        commonest answer), for each way to train ``score``, standard ``error`` over the test and what else is known,
        for both ways to train alone ``mixture_less``: ``difference`` and its standard error, and ``samples``;
        ``swapped`` is what `swap` returns, and ``runs`` what was measured of each training.
    """
    parts = parts or Parts()
    tasks = text_tasks.tasks_of(config.tasks, config.num_pairs, config.seeds[0])
    tokens = Tokens.train(text_tasks.texts_of(tasks), config.vocab_size)
    sizes = [len(text_tasks.pairs_of(task, "train", tokens, config.max_len)) for task in tasks.values()]
    rates = dict(zip(tasks, text_tasks.mixing_rates(sizes, config.limit, config.temperature), strict=True))

    def work(steps, shares, name):
        recipe = replace(config, steps=max(config.checks, steps))
        model, record = learn(recipe, tasks, tokens, shares, device, parts, name)
        record["tests"] = {}
        for task in shares:
            answers, rows = test(model, tasks[task], tokens, config)
            scores = answer_scores.ratio(rows) | other_scores(tasks[task], answers)
            record["tests"][task] = {"rows": rows, "scores": scores, "answers": answers[: config.shown]}
        if len(shares) > 1:
            record["swapped"] = swap(model, tasks, tokens, config)
        return record

    records = {"mixture": parts("mixture", work, config.steps, rates, "mixture")}
    for task, rate in rates.items():
        for method, share in ((SAME_STEPS, 1.0), (SAME_EXAMPLES, rate)):
            name = f"{task} {method}"
            records[name] = parts(name, work, round(share * config.steps), {task: 1.0}, name)
    metrics = {
        "tasks": {name: _compared(task, records, rates[name], config) for name, task in tasks.items()},
        "swapped": records["mixture"]["swapped"],
        "left_out": {
            name: len(task.examples["train"]) - size for (name, task), size in zip(tasks.items(), sizes, strict=True)
        },
        "runs": {name: record["measured"] for name, record in records.items()},
    }
    metrics["headline"] = _headline(metrics["tasks"])
    files = {name: FILES[name] for name in config.tasks if name in FILES}
    data = {
        f"{file}/{name}": digest
        for file in files.values()
        for name, digest in registry.checksums(file, [entry.name for entry in registry.get(file).files]).items()
    }
    return {"metrics": metrics, "curves": {name: record["curves"] for name, record in records.items()}, "data": data}


def _compared(task, records, rate, config):
    """What `run` tells of a task."""
    tests = {"mixture": records["mixture"]["tests"][task.name]}
    tests |= {method: records[f"{task.name} {method}"]["tests"][task.name] for method in (SAME_STEPS, SAME_EXAMPLES)}
    examples = task.examples["test"][: config.tested]
    commonest = Counter(answer for _, answer in task.examples["train"]).most_common(1)[0][0]
    compared = {
        "metric": task.metric,
        "prefix": task.prefix,
        "train": len(task.examples["train"]),
        "rate": rate,
        "commonest": answer_scores.ratio([task.row(commonest, answer) for _, answer in examples])["score"],
    }
    for method, result in tests.items():
        compared[method] = result["scores"]
        if method != "mixture":
            compared[method] = compared[method] | {
                "mixture_less": answer_scores.difference(tests["mixture"]["rows"], result["rows"])
            }
    compared["samples"] = [
        {"input": f"{task.prefix} {text}", "right": answer}
        | {method: result["answers"][i] for method, result in tests.items()}
        for i, (text, answer) in enumerate(examples[: config.shown])
    ]
    return compared


def _headline(tasks):
    said = [
        f"{name} {row['mixture']['score']:.1f} ({row[SAME_STEPS]['score']:.1f}, {row[SAME_EXAMPLES]['score']:.1f})"
        for name, row in tasks.items()
    ]
    return (
        "one model for all tasks, and in brackets one for each at equal steps and at equal examples of it, in %: "
        + ", ".join(said)
    )
