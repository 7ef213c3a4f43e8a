"""Chapter 14: what T5 may be pretrained with, what a target costs in tokens, and what each is worth for a task.

Spans behind sentinels have short targets. Beside them a text's second half, to be written after its first, and the
whole text, to be written where some of its tokens are hidden or all are in disorder. Contestants whose steps cost more
are trained twice: for as many steps as the first, and for as many floating-point operations. Then each is fine-tuned on
tasks with few examples, beside a model that was not pretrained.
"""

import itertools
from dataclasses import dataclass, replace
from statistics import median

import torch

from d2lmini.experiments.gpt import gpt_gutenberg, language
from d2lmini.experiments.t5 import answer_scores, text_tasks, text_to_text
from d2lmini.experiments.t5.t5_tasks import test
from d2lmini.experiments.t5.text_objectives import OBJECTIVES, Crops
from d2lmini.experiments.t5.text_to_text import Recipe, Tokens
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.t5_config import T5Config

SCRATCH = "not pretrained"


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe.

    Texts are crops of ``window`` tokens; of each part of ``text`` the last ``val_share`` validates. ``objectives`` are
    names of `OBJECTIVES`; the first is what the others are compared with. After the last step ``final_batches`` are
    scored, and of ``filled`` crops the spans are filled greedily, of which ``shown`` are kept. ``downstream`` has tasks
    of `text_tasks` and how many examples are used of each; fine-tuning takes ``tuning_steps`` of ``tuning_batch``
    examples at ``tuning_lr``, and up to ``tested`` examples are answered in ``answer_len`` tokens or less.
    """

    text: str = "gutenberg"
    val_share: float = 0.05
    vocab_size: int = 4_096
    window: int = 96
    objectives: tuple = ("spans of 3", "prefix", "masked")
    final_batches: int = 20
    filled: int = 64
    shown: int = 6
    downstream: tuple = (("sentiment", 2_000), ("translate", 2_000))
    num_pairs: int = 12_000
    max_len: int = 72
    tuning_steps: int = 200
    tuning_batch: int = 32
    tuning_lr: float = 2e-2
    tested: int = 2_000
    answer_len: int = 40
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=T5Config(
        num_hiddens=128, num_heads=4, head_size=32, num_blks=2, ffn_num_hiddens=384, ffn="geglu", dropout=0.0
    ),
    batch_size=24, steps=2_400, checks=6, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=16, num_heads=2, head_size=8, num_blks=1, ffn_num_hiddens=32),
        text="book", batch_size=4, steps=6, checks=2, precision="float32", val_batches=1, final_batches=1, window=24,
        vocab_size=400, objectives=("spans of 3", "prefix"), filled=4, shown=2, downstream=(("form", 40),),
        num_pairs=1_000, tuning_steps=4, tuning_batch=4, tested=6, answer_len=4,
    ),
    # the book's own text
    "cpu": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=64, head_size=16, ffn_num_hiddens=192), text="book",
        batch_size=16, steps=160, checks=2, precision="float32", val_share=0.1, window=64, vocab_size=1_024,
        objectives=("spans of 3", "prefix"), final_batches=8, filled=32, downstream=(("translate", 1_000),),
        num_pairs=4_000, tuning_steps=120, tested=200,
    ),
    "laptop": _LAPTOP,
    # spans of other lengths, and disorder, too
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=384, num_heads=6, head_size=64, num_blks=6,
        ffn_num_hiddens=1_024), batch_size=64, steps=10_000, checks=10, vocab_size=16_000, window=256,
        objectives=("spans of 3", "spans of 1", "spans of 10", "prefix", "masked", "deshuffled"), filled=500,
        final_batches=50, tuning_steps=1_000,
    ),
}  # fmt: skip


def read(config):
    """The tokenizer, the ids of the text to train on and to validate with, and the tasks."""
    tasks = text_tasks.tasks_of([name for name, _ in config.downstream], config.num_pairs, config.seeds[0])
    for name, task in tasks.items():
        if task.metric == "exact match":  # of few examples a model learns few sentences to the letter
            tasks[name] = task._replace(metric="words shared", row=answer_scores.overlap)
    texts = gpt_gutenberg.read(config.text, config.val_share)
    tokens = Tokens.train([*texts[0], *text_tasks.texts_of(tasks)], config.vocab_size)
    ids = [torch.tensor(tokens.tokenizer.encode("\n\n".join(part)), dtype=torch.int32) for part in texts]
    return tokens, ids, tasks


def pretrain(config, objective, tokens, ids, device, parts=None, name="training"):
    """Trains a T5 by one of `OBJECTIVES`; returns the model, in evaluation mode, its history, and its `Crops`."""
    if objective not in OBJECTIVES:
        raise ValueError(f"there is no objective {objective!r}, expected one of {', '.join(OBJECTIVES)}")
    data = Crops(*ids, tokens, OBJECTIVES[objective], config)
    model, history = text_to_text.train(config, tokens, data, device, config.seeds[0], parts, name)
    return model, history, data


def pretrained(config, device, parts=None):
    """A T5 that was trained by the first objective of a configuration, and its `Tokens`."""
    tokens, ids, _ = read(config)
    return pretrain(config, config.objectives[0], tokens, ids, device, parts, config.objectives[0])[0], tokens


@torch.no_grad()
def mean_loss(model, batches):
    """Mean loss in nats of a target token over batches."""
    total, number = 0.0, 0
    for batch in batches:
        batch = [part.to(model.encoder.embedding.weight.device) for part in batch]
        weight = model.batch_weight(batch)
        total, number = total + float(model.loss(model(*batch[:-1]), batch[-1])) * weight, number + weight
    return total / number


def fillings(model, data, tokens, config):
    """What a model fills spans with, greedily.

    Returns:
        dict with ``spans``, how many there were, ``right``, the share that is filled to the token, and ``examples``:
        of the first crops ``input``, ``target`` and ``filling`` as text.
    """
    right, wanted_spans, examples = 0, 0, []
    batches = data.fixed(-(-config.filled // config.batch_size))
    rows = [row for inputs, _, _, targets in batches for row in zip(inputs, targets, strict=True)][: config.filled]
    inputs, targets = (torch.stack(part) for part in zip(*rows, strict=True))
    generated = model.generate(inputs, targets.shape[1] + 4).tokens.cpu()
    for given, wanted, written in zip(inputs, targets, generated, strict=True):
        spans = by_sentinel(wanted.tolist(), tokens)
        guesses = by_sentinel(written.tolist(), tokens)
        right += sum(guesses.get(sentinel) == span for sentinel, span in spans.items())
        wanted_spans += len(spans)
        examples.append({"input": given, "target": wanted, "filling": written})
    shown = [{name: tokens.decode(ids) for name, ids in example.items()} for example in examples[: config.shown]]
    return {"spans": wanted_spans, "right": right / max(wanted_spans, 1), "examples": shown}


def by_sentinel(ids, tokens):
    """The tokens after each sentinel, up to ``<eos>``: a dict of lists; of a sentinel that comes twice, the first."""
    spans, current = {}, []
    for index in ids:
        if index == tokens.eos:
            break
        if index in tokens.sentinels:
            current = []
            spans.setdefault(index, current)
        else:
            current.append(index)
    return spans


def run(config, device, parts=None):
    """Pretrains by each objective and fine-tunes; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``runs``: of each pretraining what it cost and its losses; ``downstream``: of each task
        and each beginning the score, its standard error over the test, and the difference to `SCRATCH`; ``fillings`` of
        the first objective), ``curves`` of each pretraining and fine-tuning, and ``data``.
    """
    parts = parts or Parts()
    tokens, ids, tasks = read(config)
    made = {}

    def model_of(name, objective, steps):  # one that was trained in a part before comes from its checkpoint
        if name not in made:
            made[name] = pretrain(replace(config, steps=steps), objective, tokens, ids, device, parts, name)
        return made[name]

    def teach(name, objective, steps):
        model, history, data = model_of(name, objective, steps)
        inputs, _, _, targets = next(iter(data.fixed(1)))
        S, T = inputs.shape[1], targets.shape[1]
        flops = text_to_text.step_flops(model, S, T, config.batch_size)
        seconds = [b - a for a, b in itertools.pairwise([0.0, *history["seconds"]])]
        metrics = {
            "objective": objective,
            "steps": len(history["step"]),
            "input_tokens": S,
            "target_tokens": T,
            "step_flops": flops,
            "flops": flops * len(history["step"]),
            "text_tokens": len(history["step"]) * config.batch_size * config.window,
            "loss": mean_loss(model, data.fixed(config.final_batches)),
            "parameters": model.num_parameters,
            "train_s": round(history["seconds"][-1], 3),
            "step_s": round(median(seconds), 4),
        }
        filled = fillings(model, data, tokens, config) if name == config.objectives[0] else None
        return {
            "metrics": metrics, "curves": summaries.curves(history, "val_step", "val_loss"), "fillings": filled
        }  # fmt: skip

    def tune(name, start, task, examples):
        recipe = replace(
            config, steps=config.tuning_steps, checks=1, lr=config.tuning_lr, batch_size=config.tuning_batch
        )
        groups = [text_tasks.pairs_of(tasks[task], split, tokens, config.max_len) for split in ("train", "val")]
        data = text_to_text.Pairs(tokens, [groups[0][:examples]], [groups[1]], [1.0], recipe)
        weights = model_of(*start)[0].state_dict() if start else None
        model, history = text_to_text.train(recipe, tokens, data, device, config.seeds[0], parts, name, weights)
        answers, rows = test(model, tasks[task], tokens, config)
        curves = summaries.curves(history, "val_step", "val_loss")
        return {"rows": rows, "answers": answers[: config.shown], "curves": curves}

    first = config.objectives[0]
    starts, runs = {SCRATCH: None}, {}
    for objective in config.objectives:
        starts[objective] = objective, objective, config.steps
        runs[objective] = parts(objective, teach, *starts[objective])
        share = runs[first]["metrics"]["step_flops"] / runs[objective]["metrics"]["step_flops"]
        steps = config.checks * round(config.steps * share / config.checks)
        if 0 < steps < config.steps:
            name = f"{objective}, as many FLOPs"
            starts[name] = name, objective, steps
            runs[name] = parts(name, teach, *starts[name])
    tuned = {
        task: {
            name: parts(f"{name}, {task}", tune, f"{name}, {task}", start, task, n) for name, start in starts.items()
        }
        for task, n in config.downstream
    }
    metrics = {
        "runs": {name: record["metrics"] for name, record in runs.items()},
        "fillings": runs[first]["fillings"],
        "downstream": {
            task: {
                "metric": tasks[task].metric,
                "train": examples,
                "starts": {
                    name: answer_scores.ratio(record["rows"])
                    | {"less_not_pretrained": answer_scores.difference(record["rows"], tuned[task][SCRATCH]["rows"])}
                    for name, record in tuned[task].items()
                },
            }
            for task, examples in config.downstream
        },
    }
    metrics["headline"] = headline(metrics, config)
    curves = {name: record["curves"] for name, record in runs.items()}
    curves |= {
        f"{name}, {task}": record["curves"] for task, by_start in tuned.items() for name, record in by_start.items()
    }
    return {"metrics": metrics, "curves": curves, "data": language.text_checksums(config.text)}


def headline(metrics, config):
    """Tokens of a target, and scores after fine-tuning, by what a model was pretrained with, in a sentence."""
    targets = [f"{record['target_tokens']} ({name})" for name, record in metrics["runs"].items() if "FLOPs" not in name]
    scores = [
        f"{task} " + ", ".join(f"{result['score']:.1f} ({name})" for name, result in task_metrics["starts"].items())
        for task, task_metrics in metrics["downstream"].items()
    ]
    return (
        f"tokens of a target: {', '.join(targets)}; right after {config.tuning_steps} steps of fine-tuning at one "
        f"rate, in %: {'; '.join(scores)}"
    )
