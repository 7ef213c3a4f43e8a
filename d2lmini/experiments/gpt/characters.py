"""GPTs on the characters of a text: what `gpt_shakespeare` and `gpt_book` have in common.

The first 90 % of a text are for training. The loss on the rest is told in two ways: on random crops, as nanoGPT
estimates it, and over the whole of it with long contexts. Beside the loss: what the model writes, what it expects next,
and how much of the text it knows by heart.
"""

from dataclasses import dataclass, replace

import torch

from d2lmini.data.text import load_text
from d2lmini.experiments.gpt import language
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.tokenization.characters import CharacterTokenizer


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe; V is that of the text.

    ``rival`` is another recipe, trained in the same run. ``prompt_lengths`` and ``passages`` are those of `recalled`,
    with continuations of ``recall`` characters; ``samples`` texts of ``sample_length`` are drawn after a line break;
    after ``contexts`` passages of ``context`` characters of the validation text it is told what is expected next.
    """

    text: str = "tinyshakespeare"
    rival: Recipe | None = None
    prompt_lengths: tuple = (8, 16, 32, 64, 128)
    recall: int = 64
    passages: int = 200
    samples: int = 4
    sample_length: int = 240
    temperature: float = 0.8
    contexts: int = 12
    context: int = 60
    seeds: tuple = (0,)


def read(text):
    """A text in characters: the tokenizer, and the ids of its first nine tenths and of the rest."""
    characters = load_text(text)
    tokenizer = CharacterTokenizer(characters)
    ids = torch.tensor(tokenizer.encode(characters), dtype=torch.uint8)
    cut = int(0.9 * len(ids))
    return tokenizer, ids[:cut], ids[cut:]


def learn(recipe, ids, device, seed, parts, name):
    """Trains by a recipe and scores it; returns the model and a dict for JSON."""
    model, history = language.train(recipe, *ids, device, seed, parts=parts, name=name)
    total, scored = language.loss_on_whole(model, ids[1], recipe)
    by_place = language.loss_by_place(model, ids[1], recipe)
    metrics = {
        "crops": by_place.mean().item(),
        "whole": total / scored,
        "train_crops": language.loss_by_place(model, ids[0], recipe).mean().item(),
        **language.measures(model, history, recipe),
    }
    curves = summaries.curves(history, *language.CURVES) | {"loss_by_place": [round(x, 4) for x in by_place.tolist()]}
    return model, {"metrics": metrics, "curves": curves}


@torch.no_grad()
def look(model, tokenizer, ids, config):
    """What a trained model writes, expects next, and knows by heart: a dict for JSON."""
    options = (config.prompt_lengths, config.recall, config.passages)
    start = torch.tensor([tokenizer.encode("\n")] * config.samples)
    generator = torch.Generator().manual_seed(config.seeds[0])
    num = min(config.sample_length, config.model.max_len - 1)
    written = model.generate(start, num, temperature=config.temperature, generator=generator).tokens
    places = torch.linspace(config.context, len(ids[1]) - 1, config.contexts).long()
    contexts = torch.stack([ids[1][end - config.context : end] for end in places]).long()
    logits = model(contexts.to(model.embedding.weight.device))[:, -1].cpu()
    return {
        "samples": [tokenizer.decode(row) for row in written],
        "next": {
            "characters": tokenizer.idx_to_token,
            "contexts": [tokenizer.decode(row) for row in contexts],
            "logits": [[round(x, 3) for x in row] for row in logits.tolist()],
            "followed_by": [tokenizer.decode(ids[1][end : end + 20]) for end in places],
        },
        "recalled": {
            "lengths": list(config.prompt_lengths),
            "train": language.recalled(model, ids[0], *options),
            "val": language.recalled(model, ids[1], *options),
        },
    }


def run(config, device, parts=None):
    """Trains with every seed, and the rival once; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (of each seed: ``crops`` and ``whole``, the validation loss in nats a character on random
        crops and over the whole text; ``train_crops``; sizes and times; of the first: what `look` returns; ``rival``:
        its own), ``curves`` of the first seed and of the rival, and ``data``.
    """
    parts = parts or Parts()
    tokenizer, *ids = read(config.text)

    def work(recipe, seed, name, looked_at):
        recipe = replace(recipe, model=replace(recipe.model, vocab_size=len(tokenizer)))
        model, record = learn(recipe, ids, device, seed, parts, name)
        return record | {"look": look(model, tokenizer, ids, config) if looked_at else {}}

    names = {seed: f"seed-{seed}" for seed in config.seeds}
    records = [parts(name, work, config, seed, name, seed == config.seeds[0]) for seed, name in names.items()]
    metrics = summaries.columns([record["metrics"] for record in records]) | records[0]["look"]
    curves = records[0]["curves"]
    loss = metrics["crops"][0]
    metrics["headline"] = (
        f"{loss:.3f} nats a character on random crops, {metrics['whole'][0]:.3f} on the whole validation text, with "
        f"{metrics['parameters'][0]:,} parameters after {metrics['tokens_seen'][0] / 1e6:.1f} million characters"
    )
    if config.rival:
        rival = parts("rival", work, config.rival, config.seeds[0], "rival", False)
        metrics["rival"], curves["rival"] = rival["metrics"], rival["curves"]
        metrics["headline"] += f"; nanoGPT's recipe {rival['metrics']['crops']:.3f}"
    return {"metrics": metrics, "curves": curves, "data": language.text_checksums(config.text)}
