"""What `scaling` makes of its runs: power laws with intervals, isoFLOP optima, sample efficiency, and predictions."""

import math
from statistics import mean

from d2lmini.scaling import (
    bootstrap_laws,
    compute_frontier,
    fit_power_law,
    interpolate_log,
    isoflop_optimum,
    isoflop_profile,
    percentile_interval,
    predict_loss,
)

COUNTS = "matrices", "all", "blocks"  # of parameters: what multiplies a token; with look-ups; Kaplan's


def foretell(runs, at, draws, level):
    """Fits all laws to runs and predicts one more with them. Runs that diverged, of loss None, are left out.

    Args:
        runs: dicts with ``size``, ``parameters`` (by `COUNTS`), ``tokens``, ``flops`` and ``loss``.
        at: the further run: a dict with ``parameters``, ``tokens`` and ``flops``.
        draws: resamples of each fit. level: share of the intervals.

    Returns:
        dict of ``at``, ``diverged`` (how many runs), ``laws`` (by name ``floor``, ``factors`` and ``exponents`` with
        intervals; or ``problem``, why it cannot be fitted), ``losses`` (what each law predicts, with ``low`` and
        ``high``), ``optima`` by isoFLOP profiles, and ``tokens_needed``.
    """
    there = [run for run in runs if run["loss"] is not None]
    laws, losses = {}, {}
    for name, (chosen, columns, floor) in _cases(there).items():
        variables = [[column(run) for run in chosen] for column in columns]
        values = [run["loss"] for run in chosen]
        options = {"floor": floor, "delta": None}
        try:
            law = fit_power_law(variables, values, **options)
            drawn = bootstrap_laws(variables, values, num=draws, **options)
        except ValueError as error:
            if name.startswith("joint"):
                raise
            laws[name] = {"problem": str(error)}
            continue
        laws[name] = _described(law, drawn, level) | {"runs": len(chosen)}
        place = [column(at) for column in columns]
        losses[name] = predict_loss(law, drawn, variables, values, place, level=level)
    losses["joint"] = losses["joint, matrices"]
    return {
        "at": at,
        "diverged": len(runs) - len(there),
        "laws": laws,
        "losses": losses,
        "optima": optima(there),
        "tokens_needed": tokens_needed(there),
    }


def _cases(runs):
    """Which runs each law is fitted to, by which variables, and its floor (None: fitted)."""
    most_tokens = max(run["tokens"] for run in runs)
    most_parameters = max(run["parameters"]["matrices"] for run in runs)
    long = [run for run in runs if run["tokens"] == most_tokens]
    large = [run for run in runs if run["parameters"]["matrices"] == most_parameters]
    places = compute_frontier([run["flops"] for run in runs], [run["loss"] for run in runs])
    best = [runs[i] for i in places]

    def counted(count):
        return lambda run: run["parameters"][count]

    def tokens(run):
        return run["tokens"]

    def flops(run):
        return run["flops"]

    cases = {f"joint, {count}": (runs, [counted(count), tokens], None) for count in COUNTS}
    for kind, floor in (("straight", 0.0), ("with a floor", None)):
        for count in COUNTS:
            cases[f"parameters, {count}, {kind}"] = (long, [counted(count)], floor)
        cases[f"tokens, {kind}"] = (large, [tokens], floor)
        cases[f"compute, {kind}"] = (best, [flops], floor)
    return cases


def _described(law, drawn, level):
    described = {
        "floor": {"value": law.floor, "interval": percentile_interval([draw.floor for draw in drawn], level)},
        "factors": list(law.factors),
        "exponents": [
            {"value": value, "interval": percentile_interval([draw.exponents[i] for draw in drawn], level)}
            for i, value in enumerate(law.exponents)
        ],
    }
    if len(law.exponents) == 2:
        described["best_parameters"] = {
            "value": growth(law),
            "interval": percentile_interval([growth(draw) for draw in drawn], level),
        }
    return described


def growth(law):
    """The power of compute with which the best size grows, by the parametric form: beta / (alpha + beta)."""
    alpha, beta = law.exponents
    return beta / (alpha + beta)


def optima(runs):
    """The best size for each budget that runs surround, by isoFLOP profiles, and the power with which it grows.

    Returns:
        dict of ``profiles``, a dict for each budget (``flops`` as 6 N D, ``parameters``, ``losses``, ``best``: an
        `Optimum` as a list or ``problem``), and ``growth``, the slope of log N by log C through all of them; None with
        fewer than two.
    """
    sizes = sorted({run["parameters"]["matrices"] for run in runs})
    lengths = sorted({run["tokens"] for run in runs})
    middle = sizes[len(sizes) // 2]
    means = {}  # over seeds
    for run in runs:
        means.setdefault((run["parameters"]["matrices"], run["tokens"]), []).append(run["loss"])
    columns = [list(column) for column in zip(*[(*key, mean(values)) for key, values in means.items()], strict=True)]
    profiles, points = [], []
    for flops in (6 * middle * length for length in lengths):
        profile = {"flops": flops}
        profiles.append(profile)
        try:
            parameters, _, losses = isoflop_profile(*columns, flops)
            profile.update(parameters=parameters, losses=losses)
            profile["best"] = list(isoflop_optimum(parameters, losses, flops))
            points.append((math.log(flops), math.log(profile["best"][0])))
        except ValueError as error:
            profile["problem"] = str(error)
    return {"profiles": profiles, "growth": slope(points) if len(points) > 1 else None}


def slope(points):
    """Of the straight line through points (x, y) by least squares."""
    x, y = (mean(column) for column in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def tokens_needed(runs):
    """Sample efficiency: how many tokens each size needs for the least loss that the smallest reaches.

    Between runs of a size losses are taken on straight lines in log-log.

    Returns:
        dict of ``loss`` and ``tokens`` by size; None: its shortest run is below that loss already, or none reaches it.
    """
    by_size = {}
    for run in sorted(runs, key=lambda run: run["parameters"]["matrices"]):
        by_size.setdefault(run["size"], []).append((run["loss"], run["tokens"]))
    target = min(next(iter(by_size.values())))[0]
    return {"loss": target, "tokens": {size: interpolate_log(points, target) for size, points in by_size.items()}}


def compare(prediction, loss):
    """How far each prediction was off: ``error``, a share of the result, and whether the interval holds it.

    Raises:
        ValueError: the predicted run diverged.
    """
    if loss is None:
        raise ValueError("the held-back run diverged: there is no loss to compare the prediction with. Lower its rate")
    return {
        name: {"error": predicted["loss"] / loss - 1, "inside": predicted["low"] <= loss <= predicted["high"]}
        for name, predicted in prediction["losses"].items()
    }
