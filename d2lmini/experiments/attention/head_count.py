"""Chapter 05: the same number of features cut into more and more heads.

The translator of `head_roles` with 1, 2, 4, ... heads in every layer: parameters and operations are the same for all.
For each number the learning rate is the one of several with the lowest validation loss, found with the first seed.
"""

from dataclasses import dataclass, replace

from d2lmini.experiments.attention import head_roles
from d2lmini.lab.parts import Parts
from d2lmini.lab.rates import at_the_best


@dataclass(frozen=True)
class Config(head_roles.Config):
    """Settings beside those of `head_roles`.

    ``counts`` of heads stand in place of ``num_heads``, and ``rates`` to choose from in place of ``lr``.
    """

    counts: tuple = (1, 4)
    rates: tuple = (5e-3,)


PRESETS = {
    "smoke": Config(num_pairs=1000, max_steps=2, num_sentences=8, rates=(2.5e-3, 5e-3)),
    "cpu": Config(max_epochs=3),
    "laptop": Config(  # as head_roles, and more sentences to score
        num_pairs=6000,
        num_blks=2,
        max_epochs=5,
        num_sentences=2000,
        counts=(1, 2, 4, 8, 16, 32),
        rates=(2.5e-3, 5e-3, 1e-2),
        seeds=(0, 1, 2),
    ),
}


def learn(config, heads, rate, seed, device, parts, name):
    """Trains one model and scores it. Returns: dict with ``val_loss``, ``row`` and ``losses``, for JSON."""
    model, data, losses = head_roles.train(
        replace(config, num_heads=heads, lr=rate), seed, device=device, parts=parts, name=name
    )
    val, test = (head_roles.batches_of(data, split, config.num_sentences, device) for split in ("val", "test"))
    loss, accuracy = head_roles.evaluate(model, test)
    row = {"heads": heads, "seed": seed, "rate": rate, "parameters": model.num_parameters}
    row |= {"sentences": sum(len(group) for group, _ in test), "test_loss": loss, "test_accuracy": accuracy}
    return {"val_loss": head_roles.evaluate(model, val)[0], "row": row, "losses": losses}


def run(config, device, parts=None):
    """Trains a model for each number of heads, rate and seed; ``parts`` are those of `Parts`.

    Returns:
        dict with curves, and metrics: ``rates`` tried for each number, and ``runs``, those at the best rate.
    """
    parts = parts or Parts()
    rates, runs, curves = [], [], {}

    for heads in config.counts:

        def one(rate, seed, heads=heads):
            name = f"{heads}-{rate:g}-{seed}"
            record = parts(name, learn, config, heads, rate, seed, device, parts, name)
            curves[f"{heads} heads, rate {rate:g}, seed {seed}"] = record["losses"]
            return record

        tried, records = at_the_best(one, config.rates, config.seeds)
        rates.append({"heads": heads, **tried})
        runs += [record["row"] for record in records]

    means = {n: [row["test_accuracy"] for row in runs if row["heads"] == n] for n in config.counts}
    percentages = ", ".join(f"{sum(accuracies) / len(accuracies):.1%} with {n}" for n, accuracies in means.items())
    headline = f"next words right by number of heads, {config.num_hiddens} features in all: {percentages}"
    return {"metrics": {"headline": headline, "rates": rates, "runs": runs}, "curves": curves}
