"""Chapter 19: a real model that writes with drafts: how many tokens a pass gives, and what that saves.

It writes greedily, so that every way gives one text, the large model's. There are three kinds of texts: copies of a
text, with a change or without, lists, and stories. Drafts come from the text itself (looked up), from the model's own
first blocks with its last norm and its table, and from the model with its weights in 8 bits: all of them share its
vocabulary. Counted are the passes of the large model, and the tokens that each gives; the time is the processor's, of
one thread, with the draft's own. A pass over a draft adds up in another order than single steps do, so that of two
tokens that are equal to rounding it may choose the other: ``same`` reports whether it did not.
"""

import copy
from dataclasses import dataclass, replace
from functools import cache, partial

import torch

from d2lmini.decoding import PromptLookup, speculative_sample
from d2lmini.experiments.real_model import bases
from d2lmini.lab.parts import Parts
from d2lmini.quantized import quantize_model
from d2lmini.tokenization.characters import CharacterTokenizer

_BRIDGE = (
    "The old bridge over the river was closed last winter. Two engineers looked at every beam and found that most of "
    "the wood was sound. The council will replace six beams in May and open the bridge again in June."
)
_SOUP = (
    "Cut the onions and the carrots into small pieces. Warm the oil in a large pot, add the vegetables and stir for "
    "ten minutes. Pour in the water, add salt and let the soup cook for half an hour."
)
_BIRDS = (
    "Every autumn the swallows leave the village and fly to the south. They follow the coast, rest on the islands and "
    "cross the desert in a few days. In April they come back to the same nests under the same roofs."
)
KINDS = {
    "copy": (
        f"Repeat this text word for word:\n\n{_BRIDGE}",
        f"Repeat this text, but write tea for soup:\n\n{_SOUP}",
        f"Copy the following text exactly.\n\n{_BIRDS}",
    ),
    "list": (
        "List ten animals that live in the sea, one a line.",
        "Write a list of twelve things to take to a picnic.",
        "Name the months of the year, each with a word about its weather.",
    ),
    "story": (
        "Tell a short story about the keeper of a lighthouse who finds a map.",
        "Write the beginning of a story about a girl who can talk to clocks.",
        "Tell me a story about a fox that wants to learn how to swim.",
    ),
}


@dataclass(frozen=True)
class Draft:
    """Where drafts of ``length`` tokens come from: ``kind`` is "none", "look-up", "blocks" or "bits".

    ``size`` is the most words that are looked up, or the number of blocks, or of bits.
    """

    name: str
    kind: str
    length: int = 4
    size: int = 0


NONE = Draft("no draft", "none", 0)


@dataclass(frozen=True)
class Config:
    """Settings: ``base`` is one of `bases.BASES`, ``texts`` how many of each kind, of ``max_new_tokens`` at most."""

    base: str = "smollm2"
    drafts: tuple = (
        Draft("looked up, 4", "look-up", 4, 3),
        Draft("looked up, 10", "look-up", 10, 3),
        Draft("first 10 blocks", "blocks", 4, 10),
        Draft("first 20 blocks", "blocks", 4, 20),
        Draft("8 bits", "bits", 4, 8),
    )
    texts: int = 3
    max_new_tokens: int = 64
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), base="toy", texts=1, max_new_tokens=12,
        drafts=(Draft("looked up", "look-up", 4, 3), Draft("1 block", "blocks", 2, 1), Draft("8 bits", "bits", 3, 8)),
    ),
    "cpu": replace(
        Config(), base="shakespeare", max_new_tokens=48,
        drafts=(Draft("looked up", "look-up", 8, 4), Draft("3 blocks", "blocks", 4, 3), Draft("8 bits", "bits", 4, 8)),
    ),
    "laptop": Config(),
}  # fmt: skip


def shortened(model, num_blks):
    """A `GPT` of the first blocks of another, whose last norm and last layer follow them; all weights are shared.

    Raises:
        ValueError: there are not so many blocks.
    """
    if not 1 <= num_blks <= len(model.blks):
        raise ValueError(f"num_blks is {num_blks}, expected 1 to {len(model.blks)}")
    short = copy.copy(model)
    short._modules = {**model._modules, "blks": model.blks[:num_blks]}
    return short


def make(draft, model):
    """What `speculative_sample` takes as a draft for a model.

    Raises:
        ValueError: there is no such kind.
    """
    makers = {
        "none": lambda: PromptLookup(),  # it is asked for no token
        "look-up": lambda: PromptLookup(draft.size),
        "blocks": lambda: shortened(model, draft.size),
        "bits": lambda: quantize_model(model, draft.size),
    }
    if draft.kind not in makers:
        raise ValueError(f"the draft is of kind {draft.kind!r}, expected one of {', '.join(makers)}")
    return makers[draft.kind]()


def prompt_of(tokenizer, text):
    """The ids of what a chat model is asked; a model of characters goes on from the text and a line end."""
    if isinstance(tokenizer, CharacterTokenizer):
        return bases.encode(tokenizer, f"{text}\n")
    return tokenizer.encode_chat([{"role": "user", "content": text}])


def lengths_of(kind, config, loaded):
    """How many tokens each text of a kind has."""
    model, tokenizer = loaded()
    stop, texts = getattr(tokenizer, "stop", None), KINDS[kind][: config.texts]
    return [length_of(model, prompt_of(tokenizer, text), config.max_new_tokens, stop) for text in texts]


def length_of(model, prompt, most, stop):
    """How many tokens a model writes greedily up to its stop, which counts, at most so many."""
    lengths = model.generate([prompt], most, temperature=0, stop=stop).valid_lens
    return min(most, int(lengths[0]) + 1)


def written(draft, kind, lengths, loaded):
    """The texts of a kind with a draft: a dict for JSON.

    Args:
        draft: a `Draft`.
        kind: key of `KINDS`.
        lengths: how many tokens to write of each text.
        loaded: function that gives the model and its tokenizer.

    Returns:
        dict with ``passes``, ``proposed`` and ``accepted``, lists with a number of each text; ``tokens``, its ids; and
        ``texts_s``, the processor's seconds of each.
    """
    model, tokenizer = loaded()
    source, rows = make(draft, model), []
    for text, length in zip(KINDS[kind], lengths, strict=False):
        prompt, options = prompt_of(tokenizer, text), {"draft_length": draft.length, "temperature": 0}
        write = partial(speculative_sample, source, model, prompt, length, **options)
        with bases.one_thread():
            found, seconds = bases.processor_seconds(write)
        tokens = found.tokens.tolist()
        counts = {"passes": found.passes, "proposed": found.proposed, "accepted": found.accepted}
        rows.append(counts | {"tokens": tokens, "texts": tokenizer.decode(tokens), "texts_s": seconds})
    return {key: [row[key] for row in rows] for key in rows[0]}


def summed(record, alone):
    """What is written down of a draft on a kind of texts, beside what was written without one."""
    tokens, passes, proposed = sum(map(len, record["tokens"])), sum(record["passes"]), sum(record["proposed"])
    return {
        "tokens": tokens,
        "passes": passes,
        "tokens_per_pass": tokens / passes,
        "proposed": proposed,
        "kept": sum(record["accepted"]) / proposed if proposed else None,
        "same": [mine == theirs for mine, theirs in zip(record["tokens"], alone["tokens"], strict=True)],
        "token_s": sum(record["texts_s"]) / tokens,
        "by_text": {key: record[key] for key in ("passes", "texts_s")},
    }


@torch.no_grad()
def run(config, device, parts=None):
    """Writes all texts with every draft, and with none; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``kinds``: by kind and draft what `summed` gives; ``texts``: by kind what was asked and
        what was written without a draft), no ``curves``, and ``data``.
    """
    parts, loaded = parts or Parts(), cache(partial(bases.load, config.base))
    kinds, texts = {}, {}
    for kind in KINDS:
        lengths = parts(f"{kind}, lengths", lengths_of, kind, config, loaded)
        records = {
            draft.name: parts(f"{kind}, {draft.name}", written, draft, kind, lengths, loaded)
            for draft in (NONE, *config.drafts)
        }
        alone = records[NONE.name]
        kinds[kind] = {name: summed(record, alone) for name, record in records.items()}
        texts[kind] = [list(pair) for pair in zip(KINDS[kind], alone["texts"], strict=False)]
    metrics = {"kinds": kinds, "texts": texts}
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": {}, "data": bases.checksums(config.base)}


def headline(metrics, config):
    """Tokens a pass by draft and kind, in a sentence."""
    kinds = metrics["kinds"]
    phrases = [
        f"{draft.name} " + ", ".join(f"{kinds[kind][draft.name]['tokens_per_pass']:.2f}" for kind in kinds)
        for draft in config.drafts
    ]
    return f"tokens a pass of the large model on {', '.join(kinds)}: {'; '.join(phrases)}"
