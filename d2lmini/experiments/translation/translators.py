"""What the experiments on translation share: data by name, training with some epochs averaged, scores, samples."""

import os

import torch

from d2lmini.data.translation import GrammarCorpus, Multi30k, Tatoeba
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.metrics import corpus_bleu, corpus_chrf, tokenized_bleu
from d2lmini.training.device import num_processes

DATA = {"multi30k": Multi30k, "tatoeba": Tatoeba, "grammar": GrammarCorpus}
CHECKSUMS = {"multi30k": "multi30k", "tatoeba": "tatoeba_enfr"}


def load_data(config):
    """The data module that ``config.data`` names; ``config.vocab_size`` counts where the tokens are not words."""
    sizes = {"max_tokens": config.max_tokens, "seed": config.seeds[0]}
    if config.data == "grammar":
        return GrammarCorpus(config.num_pairs, **sizes)
    return DATA[config.data](vocab_size=config.vocab_size, **sizes)


def translate(model, data, sentences, beam_size=1, length_penalty=0.6, batch_size=128):
    """Translations of sentences, in their order.

    Args:
        model: a `Seq2Seq`.
        data: its `TranslationData`.
        sentences: list of str.
        beam_size: 1: greedily.
        length_penalty: of the beam search.
        batch_size: sentences at a time; those of about one length go together.

    Returns:
        list of str.
    """
    device = next(model.parameters()).device
    bos, eos = data.tgt_vocab["<bos>"], data.tgt_vocab["<eos>"]
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    translations = [None] * len(sentences)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        src, lens = data.encode_source([sentences[i] for i in rows])
        longest = 2 * int(lens.max()) + 10
        decoded = model.translate(
            src.to(device), lens.to(device), bos, eos, longest, beam_size=beam_size, length_penalty=length_penalty
        )
        for i, text in zip(rows, data.decode(decoded.tokens), strict=True):
            translations[i] = text
    return translations


def score(model, data, split, beam_size=1, length_penalty=0.6, limit=None):
    """Scores of a split, and its translations.

    Returns:
        dict with ``bleu`` (cased, detokenised), ``bleu_tokenized`` (lower case, as in papers on Multi30k), ``chrf``,
        their sacrebleu signatures, and how many sentences; then the list of translations.
    """
    sources, references = data.references(split)
    sources, references = sources[:limit], references[:limit]
    translations = translate(model, data, sources, beam_size, length_penalty)
    metrics = {"sentences": len(sources), "beam_size": beam_size}
    for name, metric in (("bleu", corpus_bleu), ("bleu_tokenized", tokenized_bleu), ("chrf", corpus_chrf)):
        result = metric(translations, references)
        metrics[name], metrics[f"{name}_signature"] = round(result.value, 2), result.signature
    return metrics, translations


class LastEpochs:
    """The weights of a model after each of some epochs, and their mean.

    Args:
        model: ``nn.Module``.
        folder: where they are kept, beside checkpoints; None: in memory.
    """

    def __init__(self, model, folder=None):
        self.model, self.folder, self.states = model, folder, {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, epoch):
        """Keeps the weights of now as those of an epoch."""
        state = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        if self.folder is None:
            self.states[epoch] = state
        elif not int(os.environ.get("RANK", 0)):
            half = self.folder / f".{epoch}.{os.getpid()}"
            torch.save(state, half)
            os.replace(half, self.folder / f"{epoch}.pt")

    def load_mean(self, epochs):
        """Gives the model the mean of the weights after some epochs."""
        if self.folder is not None:
            device = next(self.model.parameters()).device
            self.states = {
                epoch: torch.load(self.folder / f"{epoch}.pt", map_location=device, weights_only=True)
                for epoch in epochs
            }
        states = [self.states[epoch] for epoch in epochs]
        self.model.load_state_dict({name: sum(state[name] for state in states) / len(states) for name in states[0]})


def train(model, data, config, device, schedule, batches_per_step=1, parts=None, name="training"):
    """Trains, and scores the validation split after every epoch; the model is then the mean of the averaged epochs.

    Args:
        model, data: a `Seq2Seq` and its `TranslationData`.
        config: with ``max_epochs``, ``averaged``, ``val_sentences``, ``max_steps``, ``precision`` and ``seeds``.
        device: ``torch.device``.
        schedule: of the `Trainer`.
        batches_per_step: how many batches make a step; the processes that `torchrun` started share them evenly.
        parts, name: as `fit_part`.

    Returns:
        dict of curves.
    """
    averaged = range(config.max_epochs - config.averaged, config.max_epochs) if config.averaged > 1 else ()
    folder = parts.folder_of(f"{name}.epochs") if parts and averaged else None
    last = LastEpochs(model, folder)

    def after_epoch(trainer):
        if trainer.epoch in averaged:
            last.keep(trainer.epoch)
        if not config.val_sentences:
            return {}
        bleu = score(model, data, "val", limit=config.val_sentences)[0]["bleu"]
        if trainer.accelerator.is_main_process:
            print(f"epoch {trainer.epoch}: validation BLEU {bleu}", flush=True)
        return {"val_bleu": bleu}

    history = fit_part(
        model,
        data,
        device,
        config.max_epochs,
        parts=parts,
        name=name,
        after_epoch=after_epoch,
        gradient_clip_val=1,
        accumulate=batches_per_step // num_processes(),
        schedule=schedule,
        precision=config.precision,
        seed=config.seeds[0],
        max_steps=config.max_steps,
    )
    if averaged and config.max_steps is None:
        last.load_mean(averaged)
    return summaries.curves({"val_bleu": [], **history}, "lr", "val_epoch", "val_loss", "val_bleu")


def samples(data, split, translations, number=50):
    """The best and the worst translations of a split by sentence chrF, and some between: dicts of four entries.

    Of a data set that may not be passed on there are none: records ship with the package.
    """
    from sacrebleu.metrics import CHRF

    if data.dataset is not None and data.dataset.spdx is None:
        return []
    sources, references = data.references(split)
    chrf = CHRF()
    scored = [
        (chrf.sentence_score(text, several).score, source, several[0], text)
        for text, source, several in zip(translations, sources, references, strict=False)
    ]
    scored.sort(key=lambda row: -row[0])
    picked = [scored[round(i * (len(scored) - 1) / (number - 1))] for i in range(min(number, len(scored)))]
    return [
        dict(zip(("chrf", "source", "reference", "translation"), (round(a, 1), *b), strict=True)) for a, *b in picked
    ]


def checksums(config):
    """SHA-256 of the files of the data, for the record; what ships with the package has none."""
    from d2lmini.data import registry

    if config.data not in CHECKSUMS:
        return {}
    name = CHECKSUMS[config.data]
    return registry.checksums(name, [file.name for file in registry.get(name).files])
