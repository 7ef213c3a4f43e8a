"""Chapter 19: what weights in 8 and 4 bits cost: bytes, nats a token on real text, seconds a token.

Two models are rounded in several ways. The real one is published in 4 bits, in groups of 32, with its table of
embeddings in 8: what is called float32 of it is that, dequantised, and the same format has to give it back bit for bit.
So a second one, a GPT on characters, is trained here in float32 and never rounded before. Losses are of the same tokens
in the same windows, each token but the first of the text once, and a window begins with no context; the change from
float32 has the standard error of its mean over the tokens. A token's time is the processor's, of one thread, with the
keys and values of ``context`` tokens in the cache, and the weights dequantised at every call.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from d2lmini.data.text import load_text
from d2lmini.experiments.gpt import characters, gpt_shakespeare, language
from d2lmini.experiments.real_model import bases
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.quantized import quantize_model, weight_bytes


@dataclass(frozen=True)
class Format:
    """How weights are kept: see `quantize_model`, whose arguments these are."""

    name: str
    bits: int
    group: int | None = None
    embedding_bits: int = 8


_FORMATS = (
    Format("8 bits by row", 8),
    Format("8 bits by 32", 8, 32),
    Format("4 bits by 32", 4, 32),
    Format("4 bits by 32, table too", 4, 32, embedding_bits=4),
    Format("4 bits by row", 4),
)
FLOAT = "float32"


@dataclass(frozen=True)
class Config:
    """Settings.

    ``base`` is one of `bases.BASES`. Of each of ``texts``, a name and a part, the first ``num_tokens`` are scored, in
    windows of ``window``. ``recipe`` is how the model that is not rounded yet is trained, on its text; of the
    validation part ``num_tokens`` are scored likewise, in windows of its context. ``context`` tokens go before the step
    that is timed ``repetitions`` times.
    """

    base: str = "smollm2"
    texts: tuple = (("wikitext2", "test"), ("tinyshakespeare", None))
    num_tokens: int = 2_000
    window: int = 1_000
    formats: tuple = _FORMATS
    recipe: characters.Config = gpt_shakespeare.PRESETS["cpu"]
    recipe_tokens: int = 20_000
    context: int = 64
    repetitions: int = 9
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), base="toy", texts=(("book", None),), num_tokens=60, window=30, recipe_tokens=60, context=8,
        repetitions=2, recipe=gpt_shakespeare.PRESETS["smoke"],
        formats=(Format("8 bits by row", 8), Format("4 bits by 4", 4, 4)),
    ),
    "cpu": replace(
        Config(), base="shakespeare", texts=(("shakespeare", None),), window=250,
        recipe=replace(gpt_shakespeare.PRESETS["cpu"], text="shakespeare", steps=120, checks=2), recipe_tokens=4_000,
    ),
    "laptop": Config(),
}  # fmt: skip


@torch.no_grad()
def losses(model, tokens, window):
    """The loss of each token but the first, in nats: (N - 1,), float64, by windows that know nothing before them."""
    found = []
    for start in range(0, len(tokens) - 1, window):
        part = tokens[start : start + window + 1].long()
        found.append(F.cross_entropy(model(part[None, :-1])[0], part[1:], reduction="none").cpu().double())
    return torch.cat(found)


def compared(rounded, exact):
    """What is written down of the losses of a rounded model, (N,): ``nats``, and what it has more than the exact one.

    ``more`` is the mean difference, and ``error`` its standard error over the tokens.
    """
    more = rounded - exact
    return {
        "nats": rounded.mean().item(),
        "more": more.mean().item(),
        "error": summaries.standard_error(more.tolist()),
    }


def unchanged(model, original):
    """The share of a model's matrices' numbers that rounding left as they were."""
    modules, same, total = dict(model.named_modules()), 0, 0
    for name, module in original.named_modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            same += (modules[name].weight == module.weight).sum().item()
            total += module.weight.numel()
    return same / total


@torch.no_grad()
def measure(model, texts, window, config):
    """Rounds a model in every way: a dict for JSON.

    Args:
        model: a `GPT`.
        texts: dict from a name to tokens (N,).
        window: tokens that are read together.
        config: the `Config`.

    Returns:
        dict with ``parameters``, and ``formats``: by name ``bytes``, ``unchanged``, ``token_s``, and ``texts``, by name
        what `compared` gives.
    """
    made = {FLOAT: model}
    for form in config.formats:
        made[form.name] = quantize_model(model, form.bits, form.group, embedding_bits=form.embedding_bits)
    first = next(iter(texts.values())).long()

    def step(model):
        _, state = model.extend(first[None, : config.context], model.empty_state(1))
        return lambda: model.step(first[config.context : config.context + 1], state)

    seconds = bases.median_processor_seconds({name: step(model) for name, model in made.items()}, config.repetitions)
    found = {
        name: {key: losses(model, tokens, window) for key, tokens in texts.items()} for name, model in made.items()
    }
    formats = {
        name: {
            "bytes": weight_bytes(model),
            "unchanged": unchanged(model, made[FLOAT]),
            "token_s": seconds[name],
            "texts": {key: compared(found[name][key], found[FLOAT][key]) for key in texts},
        }
        for name, model in made.items()
    }
    return {"parameters": sum(p.numel() for p in model.parameters()), "formats": formats}


def real(config):
    """`measure` of the base."""
    model, tokenizer = bases.load(config.base)
    texts = {}
    for name, part in config.texts:
        beginning = load_text(name, part)[: 12 * config.num_tokens]  # more than so many tokens
        texts[name] = torch.tensor(bases.encode(tokenizer, beginning)[: config.num_tokens + 1])
        if len(texts[name]) <= config.num_tokens:
            raise ValueError(f"{name} has {len(texts[name])} tokens, expected {config.num_tokens} and one more")
    return measure(model, texts, config.window, config)


def never_rounded(config, device, parts, name):
    """Trains a model in float32, and `measure` of it."""
    tokenizer, train, val = characters.read(config.recipe.text)
    recipe = replace(config.recipe, model=replace(config.recipe.model, vocab_size=len(tokenizer)))
    model, _ = language.train(recipe, train, val, device, config.seeds[0], parts=parts, name=name)
    texts = {config.recipe.text: val[: config.recipe_tokens + 1]}
    return measure(model.cpu(), texts, recipe.model.max_len, config)


def run(config, device, parts=None):
    """Rounds both models in every way; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``real`` and ``never_rounded``, each what `measure` gives), no ``curves``, and ``data``.
    """
    parts = parts or Parts()
    metrics = {
        "real": parts("real", real, config),
        "never_rounded": parts("never-rounded", never_rounded, config, device, parts, "never-rounded"),
    }
    metrics["headline"] = headline(metrics, config)
    data = bases.checksums(config.base) | bases.text_checksums(config.recipe.text)
    for name, _ in config.texts:
        data |= bases.text_checksums(name)
    return {"metrics": metrics, "curves": {}, "data": data}


def headline(metrics, config):
    """Bytes and nats by format, in a sentence."""
    phrases, formats = [], metrics["real"]["formats"]
    for name, scores in formats.items():
        nats = " and ".join(f"{text['nats']:.3f}" for text in scores["texts"].values())
        phrases.append(f"{name} {scores['bytes'] / 1e6:.1f} MB, {nats}")
    texts = " and ".join(name for name, _ in config.texts)
    return f"bytes, and nats a token on {texts}: {'; '.join(phrases)}"
