"""What the benchmarks share: contestants take turns, a contest has one form, and a record can be repeated."""

import argparse
import gc
import platform
import time
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median, quantiles

import torch

import d2lmini
from d2lmini import results
from d2lmini.lab import records
from d2lmini.lab.device import describe
from d2lmini.measure import peak_bytes
from d2lmini.training.device import device_named

FEWEST = 3  # rounds, however slow the calls are


def in_turns(calls, rounds, least, device="cpu", most=float("inf")):
    """Seconds of each call: on a CPU processor time, which other work on the machine does not add to.

    Args:
        calls: dict from names to functions without arguments. In each round all of them take a turn, every other round
            in the opposite order.
        rounds: how many rounds are counted, after one that is not.
        least: seconds that a turn should last, for which short calls are repeated.
        device: where they compute; a GPU is waited for.
        most: seconds for all rounds, for which there are fewer of them, but at least `FEWEST`.

    Returns:
        Dict from names to lists of seconds a call, one for each round.
    """
    order, counts, seconds = list(calls), {}, {name: [] for name in calls}
    a_round = 0.0
    for name in order:
        once = _seconds(calls[name], 1, device)
        if once < least:  # what is short pays for its warming up
            once = _seconds(calls[name], 1, device)
        counts[name] = max(1, round(least / max(once, 1e-6)))
        a_round += counts[name] * once
    if a_round * rounds > most:
        rounds = min(rounds, max(FEWEST, int(most / a_round)))
    gc.collect()
    gc.disable()
    try:
        for i in range(rounds):
            for name in order if i % 2 else reversed(order):
                seconds[name].append(_seconds(calls[name], counts[name], device))
    finally:
        gc.enable()
    return seconds


def contest(what, calls, sizes, *, unit, work, device="cpu", memory=None, **facts):
    """One piece of work, done by ours and by its peers.

    Args:
        what: the work, in words.
        calls: dict from contestants, ``"ours"`` among them, to functions without arguments.
        sizes: has ``rounds``, ``turn_s`` and ``most_s``, as `in_turns` takes them.
        unit, work: what is counted, as "tokens", and how many of them a call does.
        device: where it is done.
        memory: the same calls, or shorter ones, of which the peak memory is taken; None: ``calls``.
        facts: what else is to be kept of it.

    Returns:
        Dict with ``what``, ``unit``, ``work``, the ``facts``, ``rounds``, and ``contestants``: of each the ``seconds``
        a call (lower quartile, median, upper quartile), what it does ``per_second``, its ``peak_bytes`` beyond what was
        held before, and ``ratio``, of our time to its own, round by round (quartiles again).
    """
    if "ours" not in calls:
        raise ValueError(f"the contestants are {', '.join(calls)}, expected 'ours' among them")
    seconds = in_turns(calls, sizes.rounds, sizes.turn_s, device, sizes.most_s)
    found = {}
    for name, times in seconds.items():
        found[name] = {
            "seconds": quartiles(times),
            "per_second": short(work / median(times)),
            "peak_bytes": peak_bytes((memory or calls)[name], device),
        }
        if name != "ours":
            found[name]["ratio"] = quartiles([a / b for a, b in zip(seconds["ours"], times, strict=True)])
    rounds = len(seconds["ours"])
    print(f"  {what}: " + ", ".join(f"{name} {of['seconds'][1]:.3g} s" for name, of in found.items()), flush=True)
    return {"what": what, **facts, "unit": unit, "work": work, "rounds": rounds, "contestants": found}


def in_bf16(device):
    """The context in which models compute: bf16 where a GPU does it, single precision on a CPU."""
    return torch.autocast("cuda", torch.bfloat16, enabled=torch.device(device).type == "cuda")


def main(name, measure, sizes, quick, arguments=None, gpu=True):
    """The command line of a benchmark, which writes ``benchmark_<name>.json``; one thread of the CPU, or a GPU in bf16.

    Args:
        name: of the module.
        measure: function of the sizes, and of the device where there is a choice, that returns a dict, what goes into
            the record.
        sizes, quick: dataclass instances; the second for ``--quick``, which takes seconds.
        arguments: list of words; None: those of the command line.
        gpu: whether there is a choice of the device; "only": sizes that are no quick ones need a GPU. There the record
            is ``benchmark_<name>_cuda.json``.

    Raises:
        SystemExit: the record would be one of the package, but the files differ from the commit or the sizes are tiny;
            or the device is not here.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it runs")
    parser.add_argument("--out", type=Path, help="folder of the record; needed where files differ from the commit")
    if gpu:
        parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args(arguments)
    source = records.source()
    if options.out is None and (options.quick or source["dirty"] is not False):
        what = "tiny sizes are" if options.quick else "files that differ from the commit are"
        parser.error(f"{what} no measurement to keep in {results.FOLDER}: commit first, or name another folder, --out")
    try:
        device = device_named(options.device if gpu else "cpu")
    except ValueError as error:
        parser.error(str(error))
    if gpu == "only" and device.type != "cuda" and not options.quick:
        parser.error("not measured: this needs a GPU, --device cuda")
    sizes = quick if options.quick else sizes
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start = time.perf_counter()
    try:
        record = {
            "benchmark": name,
            "config": results.as_json(sizes),
            **(measure(sizes, device) if gpu else measure(sizes)),
            "source": source,
            "versions": {"python": platform.python_version(), "torch": torch.__version__, **_versions()},
            "device": describe(device),
            "command": f"python -m benchmarks.{name}" + (f" --device {device.type}" if device.type != "cpu" else ""),
            "wall_s": round(time.perf_counter() - start, 1),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
    finally:
        torch.set_num_threads(threads)
    folder = options.out or results.FOLDER
    path = folder / f"benchmark_{name}{'_cuda' if device.type == 'cuda' else ''}.json"
    records.write(path, lambda: record)
    print(path)


def _versions():
    found = {"d2lmini": d2lmini.__version__}
    for package in ("transformers", "timm", "d2l"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def quartiles(values):
    """Lower quartile, median, upper quartile: list of three numbers."""
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return [short(low), short(middle), short(high)]


def short(value):
    """Four digits: more is noise."""
    return float(f"{value:.4g}")


def _seconds(call, count, device="cpu"):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize(device)
        return (time.perf_counter() - start) / count
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count
