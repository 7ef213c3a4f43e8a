"""What the benchmarks share: contestants take turns, and a record can be repeated."""

import argparse
import gc
import os
import platform
import time
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles

import torch

import d2lmini
from d2lmini import results
from d2lmini.experiments import runner


def in_turns(calls, rounds, least):
    """Processor time of each call, which other work on the machine does not add to.

    Args:
        calls: dict from names to functions without arguments. In each round all of them take a turn, every other round
            in the opposite order.
        rounds: how many rounds are counted, after one that is not.
        least: seconds that a turn should last, for which short calls are repeated.

    Returns:
        Dict from names to lists of seconds a call, one for each round.
    """
    order, counts, seconds = list(calls), {}, {name: [] for name in calls}
    for name in order:
        calls[name]()
        counts[name] = max(1, round(least / max(_seconds(calls[name], 1), 1e-6)))
    gc.collect()
    gc.disable()
    try:
        for i in range(rounds):
            for name in order if i % 2 else reversed(order):
                seconds[name].append(_seconds(calls[name], counts[name]))
    finally:
        gc.enable()
    return seconds


def ratios(calls, sizes, ours="ours"):
    """How many times the time of each peer ours takes: the median over ``sizes.rounds``, to three digits."""
    seconds = in_turns(calls, sizes.rounds, sizes.turn_s)
    return {
        peer: round(median(a / b for a, b in zip(seconds[ours], seconds[peer], strict=True)), 3)
        for peer in calls
        if peer != ours
    }


def compared(ours, theirs):
    """Seconds of two contestants, round by round, as one ratio: its median and quartiles, to three digits."""
    found = [a / b for a, b in zip(ours, theirs, strict=True)]
    low, middle, high = quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
    return {"time": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}


def main(name, measure, sizes, smoke, arguments=None, device="cpu"):
    """The command line of a benchmark: measures, on a CPU on one thread, and writes ``benchmark_<name>.json``.

    Args:
        name: of the module.
        measure: function of the sizes that returns a dict, what goes into the record.
        sizes, smoke: dataclass instances; the second for ``--smoke``, which takes seconds.
        arguments: list of words; None: those of the command line.
        device: "cpu" or "cuda", on which ``measure`` works.

    Raises:
        SystemExit: the record would be one of the package, but the files differ from the commit or the sizes are tiny.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to see whether it runs")
    parser.add_argument("--out", type=Path, help="folder of the record; needed where files differ from the commit")
    options = parser.parse_args(arguments)
    source = runner._source()
    if options.out is None and (options.smoke or source["dirty"] is not False):
        what = "tiny sizes are" if options.smoke else "files that differ from the commit are"
        parser.error(f"{what} no measurement to keep in {results.FOLDER}: commit first, or name another folder, --out")
    sizes = smoke if options.smoke else sizes
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        record = {
            "benchmark": name,
            "config": results.as_json(sizes),
            **measure(sizes),
            "source": source,
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "transformers": version("transformers"),
                "d2lmini": d2lmini.__version__,
            },
            "device": runner._described(torch.device(device)),
            "command": f"python -m benchmarks.{name}",
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
    finally:
        torch.set_num_threads(threads)
    folder = options.out or results.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"benchmark_{name}.json"
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(runner.dump(record), encoding="utf-8")
    os.replace(half, path)
    print(path)


def _seconds(call, count):
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count
