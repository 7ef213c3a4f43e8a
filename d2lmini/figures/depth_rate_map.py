"""Figure of chapter 08: at which depths and learning rates a recipe trains, and the curves behind every setting."""

import dataclasses
import math

from .base import Figure, table

VERDICTS = "trains", "stuck", "diverged"
SIGNS = "", "○", "✕"  # of the verdicts: not by colour alone
BEST = "★"
_MOST = 25  # points of a curve


class DepthRateMap(Figure):
    """What the experiment ``depth_by_rate`` found: a map of depth against learning rate for each recipe.

    A cell shows the loss at the end and what came of the training. The reader chooses a recipe, perhaps a second one to
    compare it with, and points at cells: beside the map stand the losses over the steps, with the loss of one who knows
    how frequent each character is. Of several seeds the map shows the first, whose curves are recorded, and says with
    how many a setting trains.

    Args:
        record: what `d2lmini.results.load` returns, or what the experiment's ``run`` does. A loss that is None or not
            finite is that of a model which diverged.
        config: the experiment's configuration, a dataclass or dict; None: the record's.
        recipe: the name of the one shown first; None: the first.
        other: the name of the one that it is compared with; None: none.
        depth: number of blocks of the cell that is chosen first; None: the most.
        rate: learning rate of that cell; None: the largest that trains at this depth, else the smallest.

    Raises:
        ValueError: the record is not of this experiment, is incomplete, or there is no such recipe, depth or rate.

    Source: the recipes are those of `depth_by_rate` among the experiments, which names where each comes from.
    """

    name = "depth_rate_map"
    title = "Which depths and learning rates train?"
    hint = (
        "Choose a recipe, and another to compare it with. Point at a cell for its losses over the steps; click it and "
        "it stays. By keyboard: arrow keys go from cell to cell."
    )

    def __init__(self, record, config=None, *, recipe=None, other=None, depth=None, rate=None):
        config = record.get("config") if config is None else config
        config = dataclasses.asdict(config) if dataclasses.is_dataclass(config) else config
        missing = {"metrics", "curves"} - set(record) | {"depths", "rates", "steps", "points"} - set(config or ())
        if missing:
            raise ValueError(
                f"the record lacks {', '.join(sorted(missing))}: expected one of depth_by_rate, or what its run "
                "returns and the configuration"
            )
        depths, rates = list(config["depths"]), list(config["rates"])
        for what, values in (("depths", depths), ("rates", rates)):
            if not values or values[0] <= 0 or values != sorted(set(values)):
                raise ValueError(f"{what} are {values}, expected positive numbers that rise")
        metrics, every = record["metrics"], max(1, config["steps"] // config["points"])
        names = list(metrics.get("loss") or ())
        absent = {"loss", "verdict", "steps", "unigram", "uniform"} - set(metrics)
        if absent or not names:
            raise ValueError(f"the metrics lack {', '.join(sorted(absent)) or 'recipes'}: are they of depth_by_rate?")
        longest = math.ceil(config["steps"] / every)
        joined = math.ceil(longest / _MOST)
        recipes = [_recipe(name, record, depths, rates, joined) for name in names]
        recipe = names[0] if recipe is None else recipe
        for given in (recipe, *([] if other is None else [other])):
            if given not in names:
                raise ValueError(f"there is no recipe {given!r}, only {'; '.join(names)}")
        at = len(depths) - 1 if depth is None else _place("depth", depth, depths)
        if rate is None:
            good = [n for n, verdict in enumerate(recipes[names.index(recipe)]["verdict"][at]) if verdict == 0]
            there = max(good, default=0)
        else:
            there = _place("rate", rate, rates)
        super().__init__(
            f"Losses of {len(names)} recipes at {len(depths)} depths and {len(rates)} learning rates: which train.",
            recipes=recipes,
            depths=depths,
            rates=[in_short(rate) for rate in rates],
            steps=config["steps"],
            every=every * joined,  # steps that a point of a curve is the mean of
            seeds=len(metrics["loss"][names[0]]),
            unigram=metrics["unigram"],
            uniform=metrics["uniform"],
            verdicts=VERDICTS,
            signs=SIGNS,
            best=BEST,
            recipe=recipe,
            other="" if other is None else other,
            depth=at,
            rate=there,
        )
        self.values = {"depths": depths, "rates": rates}
        for card in self.state["recipes"]:
            card["told"] = self._sentence(card["name"])

    def reckon(self, recipe):
        """What the map of a recipe comes to.

        Args:
            recipe: its name.

        Returns:
            dict of ``settings``, the number of cells; ``trains``, how many of them train; ``best``, for each depth the
            rate of the lowest loss among those that train, None where none does; ``largest``, the largest rate that
            trains at the greatest depth, None if none does; ``deepest``, the greatest depth at which any rate trains,
            None if there is none.
        """
        card = next(card for card in self.state["recipes"] if card["name"] == recipe)
        depths, rates = self.values["depths"], self.values["rates"]
        good = [[rate for rate, verdict in zip(rates, row, strict=True) if verdict == 0] for row in card["verdict"]]
        return {
            "settings": len(depths) * len(rates),
            "trains": sum(map(len, good)),
            "best": [None if n < 0 else rates[n] for n in card["best"]],
            "largest": max(good[-1], default=None),
            "deepest": max((depth for depth, row in zip(depths, good, strict=True) if row), default=None),
        }

    def _sentence(self, recipe):
        count, most = self.reckon(recipe), self.values["depths"][-1]
        trains, settings = count["trains"], count["settings"]
        if not trains:
            return f"None of {settings} settings trains."
        text = f"{trains} of {settings} settings train{'s' if trains == 1 else ''}. At {_blocks(most)}, the most, "
        if count["largest"] is None:
            return text + f"no rate does; the deepest that trains has {_blocks(count['deepest'])}."
        return text + f"the largest rate that does is {in_short(count['largest'])}."

    def fallback(self):
        header = ["blocks", *(f"rate {rate}" for rate in self.state["rates"])]
        tables = []
        for card in self.state["recipes"]:
            rows = [
                [depth, *(_cell(card, d, n) for n in range(len(header) - 1))]
                for d, depth in enumerate(self.values["depths"])
            ]
            tables.append(table(header, rows, f"{card['name']}: loss in nats a character. {card['told']}"))
        return "".join(tables)


def in_short(rate):
    """A learning rate as it stands over a column: 0.003, 3 × 10⁻⁵, 10⁹. Returns: str."""
    if 1e-4 <= rate < 1e4:
        return f"{rate:g}"
    head, power = _scientific(rate)
    raised = f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return raised if head == "1" else f"{head} × {raised}"


def _scientific(rate):
    head, power = f"{rate:.5e}".split("e")
    return f"{float(head):g}", int(power)


def _blocks(depth):
    return f"{depth} block{'' if depth == 1 else 's'}"


def _place(what, value, values):
    for i, known in enumerate(values):
        if math.isclose(value, known):
            return i
    raise ValueError(f"there is no {what} {value}, only {', '.join(f'{x:g}' for x in values)}")


def _finite(loss):
    return None if loss is None or not math.isfinite(loss) else round(loss, 3)


def _recipe(name, record, depths, rates, joined):
    """A checked recipe as it travels: lists over depths of lists over rates, of the first seed."""
    metrics, shape = record["metrics"], (len(depths), len(rates))
    card = {"name": name}
    for key in ("loss", "verdict", "steps"):
        for rows in metrics[key].get(name) or [[]]:
            if (len(rows), *{len(row) for row in rows}) != shape:
                raise ValueError(
                    f"the {key} of {name!r} is not of {shape[0]} depths and {shape[1]} rates: is the configuration "
                    "that of this run?"
                )
        card[key] = metrics[key][name][0]
    if unknown := {verdict for row in card["verdict"] for verdict in row} - set(VERDICTS):
        raise ValueError(f"{name!r} has the verdict {sorted(unknown)[0]!r}, expected {', '.join(VERDICTS)}")
    seeds = metrics["verdict"][name]
    if len(seeds) > 1:  # with how many a setting trains
        card["agree"] = [[sum(seed[d][n] == "trains" for seed in seeds) for n in range(shape[1])]
                         for d in range(shape[0])]  # fmt: skip
    card["loss"] = [[_finite(loss) for loss in row] for row in card["loss"]]
    card["verdict"] = [[VERDICTS.index(verdict) for verdict in row] for row in card["verdict"]]
    card["best"] = [_best(*row) for row in zip(card["loss"], card["verdict"], strict=True)]
    curves = {key: record["curves"].get(key) for key in (f"{name}, {d}, {r:g}" for d in depths for r in rates)}
    if missing := [key for key, curve in curves.items() if curve is None]:
        raise ValueError(f"there is no curve {missing[0]!r}")
    shown = iter(curves.values())
    card["curves"] = [[_curve(next(shown), joined) for _ in rates] for _ in depths]
    return card


def _best(losses, verdicts):
    """Which rate of a depth has the lowest loss among those that train; -1: none does."""
    good = [(loss, n) for n, (loss, verdict) in enumerate(zip(losses, verdicts, strict=True)) if verdict == 0]
    return min(good)[1] if good else -1


def _curve(losses, joined):
    """Means of so many neighbours, up to where they are no longer finite."""
    end = next((i for i, loss in enumerate(losses) if loss is None or not math.isfinite(loss)), len(losses))
    groups = [losses[i : min(i + joined, end)] for i in range(0, end, joined)]
    return [round(sum(group) / len(group), 2) for group in groups]


def _cell(card, d, n):
    """What the fallback writes into a cell."""
    loss, verdict = card["loss"][d][n], card["verdict"][d][n]
    parts = [SIGNS[verdict] if verdict else BEST if card["best"][d] == n else "", "" if loss is None else f"{loss:.4g}"]
    words = VERDICTS[verdict] if verdict else "best" if card["best"][d] == n else ""
    return " ".join(part for part in (*parts, words) if part)
