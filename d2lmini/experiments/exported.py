"""The models whose weights ship with the package: of which run each is, how they are read from its folder and scored.

`d2lmini.lab.export` does the rest: ``python -m d2lmini export NAME --checkpoint FOLDER``.
"""

from dataclasses import asdict, replace
from functools import partial

import torch
from safetensors.torch import load_model
from torch.nn import functional as F

from ..data.images import FASHION_MNIST_LABELS
from ..lab.export import Export, Source
from ..models.image_gpt import ImageGPT, ImageGPTConfig
from ..models.weights.tokenizers import as_json
from ..training import CheckpointError
from ..training.checkpoint import latest, read
from .bert import bert_pretrain, information, pretraining
from .gpt import characters, language
from .translation import translation_transformer, translators
from .vision import classification, image_gpt, vision_vit

_CPU = torch.device("cpu")


def translator(config, folder, record):
    """A translator, the mean of the epochs before its last, by BLEU of the first test split as the run decoded it."""
    data, split, metrics = translators.load_data(config), config.splits[0], record["metrics"]
    _finished(folder, split)
    model = translation_transformer.build(config, data)
    if config.averaged > 1 and config.max_steps is None:
        kept = folder / "training.epochs"
        epochs = range(config.max_epochs - config.averaged, config.max_epochs)
        missing = [f"{epoch}.pt" for epoch in epochs if not (kept / f"{epoch}.pt").exists()]
        if missing:
            raise CheckpointError(f"{kept} lacks {', '.join(missing)}, of which the model is the mean")
        translators.LastEpochs(model, kept).load_mean(epochs)
    else:
        _load(model, folder / "training")
    by_penalty = metrics["val_bleu_by_length_penalty"]
    penalty = float(max(by_penalty, key=by_penalty.get)) if by_penalty else config.length_penalties[0]

    def measure(model):
        return {"BLEU": translators.score(model, data, split, config.beam_size, penalty)[0]["bleu"]}

    pad = data.tgt_vocab["<pad>"]
    tokenizer = as_json(data.tokenizer, data.max_len)
    extra = {"beam_size": config.beam_size, "length_penalty": penalty, "split": split}
    parameters, made_of = dict(model.named_parameters()), asdict(model.config) | {"pad": pad}
    return Source(parameters, made_of, tokenizer, extra, measure, metrics[split]["bleu"])


def vit(config, folder, record):
    """The first seed's ViT, by accuracy on the test images."""
    name = _finished(folder, f"seed-{config.seeds[0]}")
    net = vision_vit.make(config)
    _load(classification.Learner(net, config), folder / name)
    data = classification.Pictures(config, _CPU, config.seeds[0])

    def measure(model):
        scores, labels, _ = classification.predict(model, data)
        accuracy = 100 * (scores.argmax(1) == labels).cpu().double().mean().item()
        return {"accuracy": accuracy, "loss": F.cross_entropy(scores, labels).item()}

    extra = {"labels": list(FASHION_MNIST_LABELS)}  # pixels are 0 (background) to 1
    recorded = 100 * record["metrics"]["accuracy"][0]
    return Source(dict(net.named_parameters()), dict(net.hparams), None, extra, measure, recorded)


def image_completer(config, folder, record):
    """The first seed's ImageGPT, by bits per pixel of the test images."""
    name = _finished(folder, f"seed-{config.seeds[0]}")
    sizes = (config.num_hiddens, config.ffn_num_hiddens, config.num_heads, config.num_blks, config.dropout)
    net = ImageGPT(ImageGPTConfig(config.img_size, config.num_levels, *sizes))
    _load(image_gpt.Learner(net, config), folder / name)
    data = image_gpt.Pixels(config, _CPU, config.seeds[0])
    pixels = data.all_pixels(train=False)

    @torch.no_grad()
    def measure(model):
        total = sum(len(some) * model.loss(model(some), some).item() for some in pixels.split(100))
        return {"bits per pixel": total / len(pixels)}

    extra = {"levels": data.quantizer.levels.tolist(), "pooled": data.pooled}
    recorded = record["metrics"]["bits"][0]
    return Source(dict(net.named_parameters()), asdict(net.config), None, extra, measure, recorded)


def characters_gpt(config, folder, record):
    """The first seed's GPT, by nats a character on the whole validation text."""
    name = _finished(folder, f"seed-{config.seeds[0]}")
    tokenizer, _, val = characters.read(config.text)
    recipe = replace(config, model=replace(config.model, vocab_size=len(tokenizer)))
    model = language.Learner(recipe)
    _load(model, folder / name)

    def measure(model):
        total, scored = language.loss_on_whole(model, val, recipe)
        return {"nats a character": total / scored}

    recorded = record["metrics"]["whole"][0]
    parameters = dict(model.named_parameters())
    return Source(parameters, asdict(recipe.model), as_json(tokenizer), {}, measure, recorded)


def encoder(contestant, config, folder, record):
    """A contestant of `bert_pretrain`, by its own guesses on the validation windows."""
    if contestant not in config.contestants:
        raise ValueError(f"the run has no contestant {contestant!r}, only {', '.join(config.contestants)}")
    name = _finished(folder, f"{config.contestants.index(contestant):02}")
    texts, objective = bert_pretrain.Texts(config), bert_pretrain.OBJECTIVES[contestant]
    causal, windows = objective.kind == "causal", texts.windows
    model = pretraining.learner(objective, texts.recipe)
    _load(model, folder / name)

    class Guesses(torch.nn.Module):
        """A `BERTForPretraining` as `information.masked_score` asks it."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def guess(self, tokens, chosen):
            return self.model.mlm(self.model.bert(tokens, causal=causal)[chosen])

    def measure(model):
        scores = information.masked_score(Guesses(model), objective, windows)
        return {"nats a guess": scores["loss"], "accuracy": 100 * scores["accuracy"]}

    recorded = record["metrics"]["contestants"][contestant]["loss"]
    parameters, tokenizer = dict(model.named_parameters()), as_json(texts.tokenizer)
    return Source(parameters, asdict(model.config), tokenizer, {"causal": causal}, measure, recorded)


EXPORTS = {
    export.name: export
    for export in (
        Export("translator_grammar", "Transformer", "translation_transformer", "cpu", "points", translator),
        Export("translator_tatoeba", "Transformer", "translation_transformer", "page", "points", translator),
        Export("vit_fashion", "ViT", "vision_vit", "page", "points", vit),
        Export("image_gpt_fashion", "ImageGPT", "image_gpt", "laptop", "bits", image_completer),
        Export("gpt_shakespeare", "GPT", "gpt_shakespeare", "page", "nats", characters_gpt),
        Export("bert_wikitext", "BERTForPretraining", "bert_pretrain", "page", "nats", partial(encoder, "masked")),
        Export("causal_wikitext", "BERTForPretraining", "bert_pretrain", "page", "nats", partial(encoder, "causal")),
    )
}


def find(name):
    """The `Export` of a name.

    Raises:
        ValueError: there is none.
    """
    if name not in EXPORTS:
        raise ValueError(f"there is no model {name!r} to export, only {', '.join(EXPORTS)}")
    return EXPORTS[name]


def _finished(folder, part):
    """The name of a part, which the run has to have finished."""
    if not (folder / f"{part}.json").exists():
        raise CheckpointError(f"the run in {folder} is not finished: it has no {part}.json")
    return part


def _load(model, folder):
    """Puts the newest checkpoint of a folder into a model."""
    path = latest(folder)
    if path is None:
        raise CheckpointError(f"there is no checkpoint in {folder}")
    weights, _, _ = read(path)
    load_model(model, str(weights))
