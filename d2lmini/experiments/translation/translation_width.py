"""Chapter 04: what a wider state does for an encoder-decoder with one context vector, by sentence length.

The recurrent models of `translation_bahdanau`, with states of several widths, and as a control the same with attention,
which does not squeeze the source into one state. For each of them the learning rate is the one of several with the
lowest validation loss, found with the first seed.
"""

from dataclasses import dataclass, replace

from d2lmini.experiments.translation import translation_bahdanau, translators
from d2lmini.experiments.translation.translation_bahdanau import DECODERS
from d2lmini.lab.parts import Parts
from d2lmini.lab.rates import at_the_best


@dataclass(frozen=True)
class Config(translation_bahdanau.Config):
    """Settings beside those of `translation_bahdanau`.

    ``widths`` of the state stand in place of ``num_hiddens``, and ``rates`` to choose from in place of ``lr``.
    """

    widths: tuple = (16, 64)
    rates: tuple = (8e-3,)


PRESETS = {
    "smoke": Config(num_pairs=1000, embed_size=8, max_epochs=1, max_steps=3, widths=(8, 16), rates=(4e-3, 8e-3)),
    "cpu": Config(num_pairs=3000, max_tokens=512, dropout=0.0, max_epochs=4),
    "laptop": Config(  # data, batches and epochs as in the preset of this name of translation_bahdanau
        num_pairs=8000,
        max_tokens=768,
        widths=(32, 64, 128, 256),
        rates=(4e-3, 8e-3, 1.6e-2),
        seeds=(0, 1),
    ),
}


def run(config, device, parts=None):
    """Trains both kinds at each width; ``parts`` are those of `Parts`.

    Returns:
        dict with curves, and metrics: ``rates`` tried, with the validation loss of each, and ``runs``, those at the
        best rate, for each seed; both name kind and width.
    """
    parts = parts or Parts()
    rates, runs, curves = [], [], {}
    data = {seed: translators.load_data(replace(config, seeds=(seed,))) for seed in config.seeds}

    for kind in DECODERS:
        for width in config.widths:

            def one(rate, seed, kind=kind, width=width):
                name, sized = f"{kind}-{width}-{rate:g}-{seed}", replace(config, num_hiddens=width, lr=rate)
                record = parts(name, translation_bahdanau.learn, sized, data[seed], kind, seed, device, parts, name)
                curves[f"{kind}, width {width}, rate {rate:g}, seed {seed}"] = record["curves"]
                return {**record["row"], "width": width, "rate": rate, "val_loss": record["curves"]["val_loss"][-1]}

            tried, best_runs = at_the_best(one, config.rates, config.seeds)
            rates.append({"kind": kind, "width": width, **tried})
            runs += best_runs

    headline = "; ".join(f"{kind}: {_told(runs, kind, config.widths)}" for kind in DECODERS)
    metrics = {"headline": f"BLEU of the shortest and of the longest sentences, by width of the state; {headline}"}
    return {
        "metrics": {**metrics, "rates": rates, "runs": runs},
        "curves": curves,
        "data": translators.checksums(config),
    }


def _told(runs, kind, widths):
    """For each width the means over seeds of the first and of the last bin, in words."""
    said = []
    for width in widths:
        bins = [row["by_length"] for row in runs if (row["kind"], row["width"]) == (kind, width)]
        short, long = (sum(row[at]["bleu"] for row in bins) / len(bins) for at in (0, -1))
        said.append(f"{width} {short:.1f} and {long:.1f}")
    return ", ".join(said)
