"""Chapter 16: GPTs on 21 novels, for vocabularies of several sizes, and what each way of decoding makes of one.

The tokens are those of a byte-level BPE that is trained on the training text. Of each novel the end is kept for
validation. A line end inside of a paragraph is a space: it belongs to the file, not to the novel. A step has the same
number of tokens in any vocabulary, so that one of fewer tokens sees less text. So those after the first are trained
twice: for as many steps as the first, and for as many bytes of text. Losses are bits per byte, which compare.
"""

import re
from dataclasses import dataclass, replace

import torch

from d2lmini.data import registry
from d2lmini.data.text import load_text
from d2lmini.experiments.gpt import decodings, language
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.figures.beam_tree import BeamTree
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.tokenization.fast_bpe import BPETokenizer


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe; V comes from ``vocab_sizes``, the first of which decodes.

    ``prompts`` of ``prompt_length`` tokens are continued by ``length`` tokens in ``texts`` ways each; the texts of
    the first ``shown`` are kept. ``beyond`` are the sizes of heads of the distribution beyond which the tail is
    measured. Of up to ``sentences`` sentences the first ``sentence_length`` tokens stand ``copies`` times in a row.
    ``swap_lengths``, ``swaps``, ``swap_context`` and ``swap_scored`` are those of `decodings.swapped`; as many prompts
    are continued greedily by ``loop_length`` tokens, to look at the loops in which that ends. After ``contexts``
    prompts the scores of the next token are kept, and after the first a search of ``tree_length`` tokens.
    """

    text: str = "gutenberg"
    val_share: float = 0.05
    vocab_sizes: tuple = (4096, 512)
    prompts: int = 40
    prompt_length: int = 32
    length: int = 60
    texts: int = 4
    shown: int = 2
    beyond: tuple = (1, 10, 100, 1000)
    sentences: int = 200
    sentence_length: int = 12
    copies: int = 8
    swap_lengths: tuple = (0, 8, 16, 32, 64)
    swaps: int = 200
    swap_context: int = 96
    swap_scored: int = 16
    loop_length: int = 90
    contexts: int = 3
    tree_length: int = 6
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=replace(
        GPT_CONFIGS["modern"], vocab_size=4096, max_len=128, num_hiddens=192, num_heads=3, num_blks=4, dropout=0.0
    ),
    batch_size=32, steps=900, checks=6, val_batches=10, final_batches=20, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(GPT_CONFIGS["modern-toy"], max_len=48, num_hiddens=16, num_heads=2), text="book",
        batch_size=4, steps=6, checks=2, val_batches=2, final_batches=2, precision="float32", val_share=0.02,
        vocab_sizes=(320, 280), prompts=3, prompt_length=6, length=10, texts=2, beyond=(1, 10), sentences=6,
        sentence_length=12, copies=2, swap_lengths=(0, 4), swaps=3, swap_context=12, swap_scored=4, loop_length=20,
        contexts=2, tree_length=3,
    ),
    # a short text: the book's own
    "cpu": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=96, num_hiddens=96, num_heads=3, num_blks=3), text="book",
        batch_size=16, steps=240, checks=4, precision="float32", val_share=0.1, vocab_sizes=(1024, 384), prompts=20,
        prompt_length=16, length=40, texts=3, beyond=(1, 10, 100, 500), sentences=60, copies=6,
        swap_lengths=(0, 8, 16, 32), swaps=60, swap_context=64, loop_length=60,
    ),
    "laptop": _LAPTOP,
    # four times through the text
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=512, num_hiddens=512, num_heads=8, num_blks=8, dropout=0.1),
        batch_size=64, steps=500, checks=10, prompts=200, prompt_length=64, length=200, sentences=500,
    ),
}  # fmt: skip


def unwrapped(text):
    """A text whose paragraphs are one line each, with an empty line between them, and its words one space apart."""
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", re.sub(r"[ \t]*\n[ \t]*", "\n", text))
    return re.sub(r" {2,}", " ", re.sub(r"\n{3,}", "\n\n", text))


def divided(text, share):
    """A text in two, between paragraphs; the second part is at least a share of it."""
    cut = text.rfind("\n\n", 0, max(1, int((1 - share) * len(text))))
    if cut < 1:
        raise ValueError(f"a text of {len(text)} characters has no paragraph that ends before its last {share} part")
    return text[:cut], text[cut + 2 :]


def read(text, val_share):
    """What a text has for training and for validation: two lists of str, one of each novel."""
    if text == "gutenberg":
        novels = [load_text(text, file.name.removesuffix(".txt")) for file in registry.get(text).files]
    else:
        novels = [load_text(text)]
    return tuple(map(list, zip(*(divided(unwrapped(novel), val_share) for novel in novels), strict=True)))


def encoded(texts, vocab_size):
    """A tokenizer trained on the first list of texts, and the ids of each list, as one text."""
    tokenizer = BPETokenizer.train(texts[0], vocab_size)
    return tokenizer, *(torch.tensor(tokenizer.encode("\n\n".join(part)), dtype=torch.int32) for part in texts)


def learn(recipe, tokenizer, ids, device, seed, parts, name):
    """Trains by a recipe and scores it; returns the model and a dict for JSON."""
    recipe = replace(recipe, model=replace(recipe.model, vocab_size=len(tokenizer)))
    model, history = language.train(recipe, *ids, device, seed, parts=parts, name=name)
    total, scored = language.loss_on_whole(model, ids[1], recipe, stride=recipe.model.max_len // 2)
    bytes_a_token = len(tokenizer.decode(ids[0]).encode("utf-8")) / len(ids[0])
    measured = language.measures(model, history, recipe)
    used = measured["parameters"] - model.embedding.weight.numel()  # a look-up multiplies nothing
    metrics = {
        "vocab_size": len(tokenizer),
        "steps": len(history["step"]),
        "bits_per_byte": language.bits_per_byte(total, tokenizer.decode(ids[1][1:])),
        "nats_per_token": total / scored,
        "bytes_per_token": bytes_a_token,
        "context_bytes": recipe.model.max_len * bytes_a_token,
        "bytes_seen": measured["tokens_seen"] * bytes_a_token,
        "flops": 6 * used * measured["tokens_seen"],  # forward and backward, attention's scores left out
        **measured,
    }
    return model, {"metrics": metrics, "curves": summaries.curves(history, *language.CURVES)}


def sentences_of(text, tokenizer, length, most):
    """The first tokens of sentences that have so many or more, (n, length), of the first ``most`` of a text."""
    sentences = re.findall(r"(?<=[.!?] )[A-Z][^.!?\n]*[.!?](?=\s)", text)
    rows = [row[:length] for row in tokenizer.encode_batch(list(dict.fromkeys(sentences))) if len(row) >= length][:most]
    if not rows:
        raise ValueError(f"none of {len(sentences)} sentences has {length} tokens: choose another sentence_length")
    return torch.tensor(rows)


def look(model, tokenizer, ids, texts, config):
    """What each way of decoding makes of a trained model: a dict for JSON."""
    model = model.cpu().float()
    seed = config.seeds[0]
    names = [tokenizer.to_tokens(i) for i in range(len(tokenizer))]
    begins = torch.tensor([name.startswith("▁") and len(name) > 1 for name in names])  # a word
    contexts, truth = decodings.passages(ids[1], config.contexts, config.prompt_length, 20, begins)
    prompts, _ = decodings.passages(ids[1], config.swaps, config.prompt_length, config.loop_length, begins)
    sentences = sentences_of("\n\n".join(texts[1]), tokenizer, config.sentence_length, config.sentences)
    _, state = model.extend(contexts[:1, :-1], model.empty_state(1))
    # a full stop ends the search
    tree = BeamTree.of(model.step, state, contexts[0, -1], tokenizer["."], config.tree_length, names)
    swap = (config.swap_lengths, config.swaps, config.swap_context, config.swap_scored, seed)
    return {
        **decodings.compare(model, ids[1], config, tokenizer.decode, begins),
        "turns": decodings.turns(model, prompts, config.loop_length),
        "repeated": decodings.repeated(model, sentences, config.copies) | {"sentences": len(sentences)},
        "swapped": decodings.swapped(model, ids[1], *swap),
        "next": {
            "tokens": names,
            "contexts": [tokenizer.decode(row) for row in contexts],
            "hundredths_below": decodings.next_scores(model, contexts),
            "followed_by": [decodings.after(*pair, tokenizer.decode) for pair in zip(contexts, truth, strict=True)],
        },
        "tree": tree.state["searches"],
    }


def run(config, device, parts=None):
    """Trains for every vocabulary, and decodes with the first; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``runs``, for each training what `learn` tells; what `look` returns), ``curves`` of each
        training, and ``data``.
    """
    parts = parts or Parts()
    texts = read(config.text, config.val_share)
    made = {}

    def tokens(size):  # only if a part is not finished yet
        if size not in made:
            made[size] = encoded(texts, size)
        return made[size]

    def work(size, steps, name, decodes):
        tokenizer, *ids = tokens(size)
        model, record = learn(replace(config, steps=steps), tokenizer, ids, device, config.seeds[0], parts, name)
        return record | {"look": look(model, tokenizer, ids, texts, config) if decodes else {}}

    first, *others = config.vocab_sizes
    name = f"{first}"
    records = {name: parts(name, work, first, config.steps, name, True)}
    bytes_a_token = records[name]["metrics"]["bytes_per_token"]
    for size in others:
        name = f"{size}, as many tokens"
        records[name] = parts(name, work, size, config.steps, name, False)
        share = bytes_a_token / records[name]["metrics"]["bytes_per_token"]
        name = f"{size}, as many bytes"
        records[name] = parts(
            name, work, size, config.checks * round(config.steps * share / config.checks), name, False
        )
    metrics = {"runs": {name: record["metrics"] for name, record in records.items()}, **records[f"{first}"]["look"]}
    bits = [f"{record['bits_per_byte']:.3f} (vocabulary of {name})" for name, record in metrics["runs"].items()]
    greedy, nucleus = (metrics["methods"][name]["repetition"] for name in ("greedy", "nucleus 0.9"))
    metrics["headline"] = (
        f"bits per byte {', '.join(bits)}; of the 4-grams {greedy:.0%} repeat one of the same text when decoded "
        f"greedily, {nucleus:.0%} with a nucleus of 0.9"
    )
    curves = {name: record["curves"] for name, record in records.items()}
    return {"metrics": metrics, "curves": curves, "data": language.text_checksums(config.text)}
