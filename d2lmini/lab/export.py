"""From the checkpoint of a recorded run to a file of weights: what must fit, what rounding costs, what is written."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .. import results
from ..models.weights import files
from ..models.weights.rounding import restored, rounded
from ..models.weights.trained import assemble
from ..training.checkpoint import difference
from . import records
from .runner import preset_of

COSTS = "live_rounding.json"
ALLOWED = 0.2  # points that int8 may cost
_BASES = {"nats": 2.718281828459045, "bits": 2.0}


class Source(NamedTuple):
    """What a finished run gives to be exported.

    ``measure`` takes a model and returns a dict of scores, the first of which is the one that decides; ``recorded`` is
    what the record says of that one.
    """

    tensors: dict
    config: dict
    tokenizer: dict | None
    extra: dict
    measure: Callable
    recorded: float


@dataclass(frozen=True)
class Export:
    """A model that is exported.

    Args:
        name: of its file.
        model: key of `trained.MODELS`.
        experiment, preset: of the run, whose module `experiments.find` gives.
        metric: "points" (BLEU, or accuracy in %: more is better), "nats" or "bits" (a loss).
        read: function of configuration, checkpoint folder and record that returns a `Source`.
    """

    name: str
    model: str
    experiment: str
    preset: str
    metric: str
    read: Callable

    @property
    def run(self):
        return f"{self.experiment}, preset {self.preset}"


def lost_points(metric, before, after):
    """How many points are lost between two scores; below 0 where there is a gain.

    A point of BLEU or of accuracy is one of a hundred. A point of a loss is one per cent of perplexity: by so much less
    likely is the truth to the model, in the geometric mean.
    """
    return before - after if metric == "points" else 100 * (_BASES[metric] ** (after - before) - 1)


def export(what, module, checkpoint, out=None, record=None):
    """Turns the checkpoint folder of a recorded run into a file of weights, and writes down what rounding costs.

    Int8 is taken unless it loses more than `ALLOWED` points; then float16.

    Args:
        what: an `Export`.
        module: its experiment.
        checkpoint: folder of the run.
        out: folder of the file and of the costs; None: those of the package.
        record: file of the run's record; None: that in the package's results.

    Returns:
        path of the file, and its costs, a dict.

    Raises:
        ValueError: folder and record are of another run, preset, configuration or commit.
        CheckpointError: the run is not finished, or damaged.
    """
    config = preset_of(module, what.preset)
    checkpoint, record_path = Path(checkpoint), Path(record or results.FOLDER / f"{what.experiment}.{what.preset}.json")
    record = _read(record_path, f"`{results.command(what.experiment, what.preset)}` makes it")
    meant = _read(checkpoint / "run.json", "expected the folder of a run with --checkpoint")
    _check(what, config, record, record_path, meant, checkpoint)
    source = what.read(config, checkpoint, record)
    tensors = {name: tensor.detach().float() for name, tensor in source.tensors.items()}
    before = source.measure(assemble(what.model, source.config, tensors))
    score = next(iter(before))
    if abs(lost_points(what.metric, source.recorded, before[score])) > ALLOWED:
        raise ValueError(
            f"{score} of the weights in {checkpoint} is {before[score]:.4f}, but {record_path} says "
            f"{source.recorded:.4f}: are they of the same run?"
        )
    tried = {}
    for kind in ("int8", "float16"):
        kept = rounded(tensors, kind)
        after = source.measure(assemble(what.model, source.config, restored(kept)))
        tried[kind] = round(lost_points(what.metric, before[score], after[score]), 4)
        if tried[kind] <= ALLOWED:
            break
    rounding = {"kind": kind, "metric": score, "before": _short(before)[score], "after": _short(after)[score]}
    run = {
        **{key: record[key] for key in ("experiment", "preset", "config", "command")},
        "commit": record["source"]["commit"],
        "headline": record["metrics"]["headline"],
        "record_sha256": hashlib.sha256(record_path.read_bytes()).hexdigest(),
    }
    path = files.path_of(what.name, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    said = {"name": what.name, "model": what.model, "config": source.config, "tokenizer": source.tokenizer}
    files.write(path, kept, said | {"extra": source.extra, "run": run, "rounding": rounding})
    costs = rounding | {
        "before": _short(before),
        "after": _short(after),
        "lost_points": tried,
        "parameters": sum(tensor.numel() for tensor in tensors.values()),
        "bytes": path.stat().st_size,
        **{key: run[key] for key in ("experiment", "preset", "commit")},
    }
    _add_costs(what.name, costs, out)
    return path, costs


def overview(exports, folder=None):
    """A line for each model: whether its file is there, of how many bytes, from which run, how it is rounded."""
    rows, total = [("model", "bytes", "rounding", "run")], 0
    for what in exports:
        path = files.path_of(what.name, folder)
        if not path.exists():
            rows.append((what.name, "missing", "", what.run))
            continue
        said, size = files.read(path).metadata["rounding"], path.stat().st_size
        total += size
        cost = f"{said['kind']}: {said['metric']} {said['before']:.4g} to {said['after']:.4g}"
        rows.append((what.name, f"{size:,}", cost, what.run))
    rows.append(("all", f"{total:,}", "", ""))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows)


def _check(what, config, record, record_path, meant, checkpoint):
    """Raise where the record, the folder and the preset are not of one run."""
    faults = results.problems(record)
    if faults:
        raise ValueError(f"{record_path} is no record: {faults[0]}")
    if (record["experiment"], record["preset"]) != (what.experiment, what.preset):
        said = f"{record['experiment']}, preset {record['preset']}"
        raise ValueError(f"{record_path} is of {said}, but {what.name} of {what.run}")
    if not results.config_matches(record, config):
        again = results.command(what.experiment, what.preset)
        raise ValueError(f"{record_path} is of another configuration than the preset: `{again}` makes it anew")
    then, commit = meant.get("meant", {}), meant.get("commit")
    if (then.get("experiment"), then.get("preset")) != (what.experiment, what.preset):
        said = f"{then.get('experiment')}, preset {then.get('preset')}"
        raise ValueError(f"{checkpoint} is of {said}, but {what.name} of {what.run}")
    lines = difference(then.get("config", {}), record["config"])[:10]
    if lines:
        raise ValueError("\n  ".join([f"{checkpoint} is of another configuration than {record_path}:", *lines]))
    if commit != record["source"]["commit"]:
        raise ValueError(f"{checkpoint} is of commit {commit}, but {record_path} of {record['source']['commit']}")


def _read(path, cure):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"there is no {path}: {cure}") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _short(scores):
    return {name: round(value, 5) for name, value in scores.items()}


def _add_costs(name, costs, out):
    path = Path(out or results.FOLDER) / COSTS
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    records.write(path, lambda: dict(sorted((known | {name: costs}).items())))
