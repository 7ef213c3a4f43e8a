"""Chapter 19: is a review for the film or against it? A real model, adapted by thin changes, as a whole, or not at all.

The model is asked to go on from ``Review: ... Sentiment:``, and of two words the likelier one is its answer. Five ways
to have the answer from the same training sentences: none of them (the model as it is); some of them in the prompt;
adapters of low rank on the projections of queries and values; all weights; and a logistic regression on the sentence
vectors of MiniLM, a smaller model that was trained for vectors. Adapters and the whole model take the same batches in
the same order, once, at learning rates that are usual for each and were not tuned; the regression's strength is chosen
by cross-validation on the training sentences. All are tested on the same sentences, in float32. Seconds are the
processor's, of one thread. Kept is what has to be stored beside the published weights.

Source: Hu et al. 2022; the data, Pang and Lee 2005.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from d2lmini.adapters import adapt, adapter_state
from d2lmini.data.batching import LengthBatches
from d2lmini.data.sentiment import SentencePolarity
from d2lmini.decoding import reorder
from d2lmini.experiments.bert import fine_tuning
from d2lmini.experiments.bert.toy_texts import MadeReviews
from d2lmini.experiments.real_model import bases
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.lab.parts import Parts
from d2lmini.models.weights.minilm import load_minilm, sentence_embeddings
from d2lmini.quantized import weight_bytes
from d2lmini.tokenization.characters import CharacterTokenizer
from d2lmini.tokenization.fast_bpe import BPETokenizer
from d2lmini.training import DataModule, Module
from d2lmini.training.schedules import WarmupLinear

NAMES = {
    "zero": "no example",
    "few": "examples in the prompt",
    "adapters": "adapters",
    "whole": "whole model",
    "minilm": "regression on MiniLM's vectors",
}


@dataclass(frozen=True)
class Config:
    """Settings.

    ``base`` is one of `bases.BASES`; ``made`` takes sentences made by rule, which need no data. ``words`` are the two
    answers, against and for: the first token of each is compared. ``shots`` training sentences stand in the prompt of
    "few". ``warmup`` is a share of the steps, after which the rate falls to zero in a straight line.
    """

    base: str = "smollm2"
    made: bool = False
    fold: int = 0
    contestants: tuple = tuple(NAMES)
    words: tuple = (" negative", " positive")
    train: int = 1_536
    test: int = 1_000
    shots: int = 8
    rank: int = 8
    alpha: float = 16.0
    where: tuple = ("W_q", "W_v")
    lr_adapters: float = 1e-3
    lr_whole: float = 3e-5
    batch_size: int = 32
    epochs: int = 1
    warmup: float = 0.1
    gradient_clip_val: float = 1.0
    precision: str = "bf16"
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), base="toy", made=True, contestants=("zero", "few", "adapters", "whole"), train=16, test=20, shots=2,
        rank=2, lr_whole=1e-3, batch_size=8, precision="float32",
    ),
    # a model of characters, which knows no reviews: the adapters have to learn all of it
    "cpu": replace(
        Config(), base="shakespeare", made=True, contestants=("zero", "adapters", "whole"), train=384, test=160,
        lr_whole=3e-4, precision="float32",
    ),
    "laptop": Config(),
}  # fmt: skip


class Answers(Module):
    """A `GPT` that answers with one of some words: scores (B, C) of their first tokens after the last one read.

    Args:
        model: the `GPT`.
        words: the ids of the C tokens.
        lr: of AdamW, on what of the model is not frozen.
    """

    def __init__(self, model, words, lr=None):
        super().__init__()
        self.model, self.words, self.lr = model, list(words), lr

    def forward(self, tokens, valid_lens):
        """Prompts (B, T), filled up on the right to where their lengths (B,) do not reach, to (B, C)."""
        X = self.model.features(tokens)[torch.arange(len(tokens)), valid_lens - 1]  # (B, h)
        return X @ self.model.dense.weight[self.words].T

    def loss(self, Y_hat, Y):
        """Mean cross-entropy of scores (B, C) and labels (B,)."""
        return F.cross_entropy(Y_hat.float(), Y)

    def configure_optimizers(self):
        """AdamW without decay."""
        return torch.optim.AdamW([p for p in self.parameters() if p.requires_grad], lr=self.lr, weight_decay=0.0)


class Prompts(DataModule):
    """Prompts, lists of ids, with their labels, in batches of like length."""

    def __init__(self, rows, labels, batch_size, seed=0):
        self.items = [(torch.tensor(row), label) for row, label in zip(rows, labels, strict=True)]
        self.batches = LengthBatches([len(row) for row in rows], batch_size, True, seed)

    def get_dataloader(self, train):
        """Training batches alone: tokens (B, T), lengths (B,), labels (B,)."""
        return DataLoader(self.items, batch_sampler=self.batches, collate_fn=_batch) if train else None


def _batch(items):
    rows, labels = zip(*items, strict=True)
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows]), torch.tensor(labels)


def examples(config):
    """Training and test sentences, each a list of (text, label), the classes in turns."""
    plain = BPETokenizer.train(["none is read with it"], 260)
    data = MadeReviews(plain) if config.made else SentencePolarity(plain, fold=config.fold, truncate=True)
    found = {split: data.examples(split)[: getattr(config, split)] for split in ("train", "test")}
    for split, rows in found.items():
        if len(rows) < getattr(config, split):
            raise ValueError(f"{split} is {getattr(config, split)}, but there are {len(rows)} sentences")
    return found["train"], found["test"]


def prompt(text, word=""):
    """What the model goes on from; with a word, an example of how."""
    return f"Review: {text}\nSentiment:{word}"


@torch.no_grad()
def scores(answers, rows, before=None, batch_size=32):
    """How much likelier the second word is than the first after prompts, lists of ids: (N,).

    Args:
        answers: an `Answers`.
        rows: the prompts.
        before: None, or a `GPTState` of one row that has read what goes before each of them.
    """
    found = torch.zeros(len(rows))
    for places in LengthBatches([len(row) for row in rows], batch_size):
        tokens, valid_lens, _ = _batch([(torch.tensor(rows[place]), 0) for place in places])
        if before is None:
            said = answers(tokens, valid_lens)
        else:
            state = reorder(before, torch.zeros(len(places), dtype=torch.long))
            logits, _ = answers.model.extend(tokens, state)
            said = logits[torch.arange(len(places)), valid_lens - 1][:, answers.words]
        found[list(places)] = said[:, 1] - said[:, 0]
    return found


def judged(differences, labels):
    """``accuracy`` of scores (N,) with its standard ``error``, and the ``share`` that is taken for the second class."""
    chosen = (differences > 0).tolist()
    right = summaries.share([mine == bool(label) for mine, label in zip(chosen, labels, strict=True)])
    return right | {"share": sum(chosen) / len(chosen)}


def asked(contestant, config, parts, name, device):
    """A way to ask the base, with or without training: a dict for JSON.

    Returns:
        dict with what `judged` gives, ``kept_bytes``, ``learned`` (how many numbers), ``steps``, ``train_s`` and
        ``test_s``, and of those that train their ``curves``.
    """
    model, tokenizer = bases.load(config.base)
    train, test = examples(config)
    words = [first_token(tokenizer, word) for word in config.words]
    answers, record, before = Answers(model, words), {"kept_bytes": 0, "learned": 0, "steps": 0, "train_s": 0.0}, None
    if contestant == "few":
        shown = "\n\n".join(prompt(text, config.words[label]) for text, label in train[: config.shots]) + "\n\n"
        with torch.no_grad():
            _, before = model.extend(torch.tensor([bases.encode(tokenizer, shown)]), model.empty_state(1))
        record["kept_bytes"] = len(shown.encode())
    elif contestant != "zero":
        record |= learn(contestant, answers, tokenizer, train, config, parts, name, device)
    rows = [bases.encode(tokenizer, prompt(text)) for text, _ in test]
    said, seconds = bases.processor_seconds(lambda: scores(answers.cpu(), rows, before))
    return judged(said, [label for _, label in test]) | record | {"test_s": seconds}


def first_token(tokenizer, word):
    """Of a word as it follows a text; a model of characters is asked for the first letter, not for the space."""
    return bases.encode(tokenizer, word.strip() if isinstance(tokenizer, CharacterTokenizer) else word)[0]


def learn(contestant, answers, tokenizer, train, config, parts, name, device):
    """Trains adapters or the whole model, in place: a part of what `asked` gives."""
    import accelerate  # noqa: F401  (the trainer imports it, which takes seconds that are no training)

    torch.manual_seed(config.seeds[0])
    if contestant == "adapters":
        adapt(answers.model, config.rank, config.where, config.alpha)
        answers.lr = config.lr_adapters
    else:
        answers.lr = config.lr_whole
    rows = [bases.encode(tokenizer, prompt(text)) for text, _ in train]
    data = Prompts(rows, [label for _, label in train], config.batch_size, config.seeds[0])
    steps = config.epochs * len(data.batches)
    warmup = int(config.warmup * steps)
    history, seconds = bases.processor_seconds(
        lambda: fit_part(
            answers,
            data,
            device,
            config.epochs,
            parts=parts,
            name=name,
            gradient_clip_val=config.gradient_clip_val,
            schedule=WarmupLinear(warmup, steps, steps - warmup),
            precision=config.precision,
            seed=config.seeds[0],
        )
    )
    kept = len(save(adapter_state(answers.model))) if contestant == "adapters" else weight_bytes(answers.model)
    learned = sum(p.numel() for p in answers.model.parameters() if p.requires_grad)
    curves = summaries.curves(history)
    return {"kept_bytes": kept, "learned": learned, "steps": steps, "train_s": seconds, "curves": curves}


def regressed(config):
    """A logistic regression on MiniLM's sentence vectors: a dict as that of `asked`."""
    from sklearn.linear_model import LogisticRegressionCV

    model, tokenizer = load_minilm()
    train, test = examples(config)

    def fit():
        vectors = sentence_embeddings(model, tokenizer, [text for text, _ in train]).numpy()
        strengths = [10.0**power for power in range(-2, 4)]
        return LogisticRegressionCV(Cs=strengths, cv=5, max_iter=2_000).fit(vectors, [label for _, label in train])

    regression, train_s = bases.processor_seconds(fit)
    said, test_s = bases.processor_seconds(
        lambda: regression.decision_function(sentence_embeddings(model, tokenizer, [text for text, _ in test]).numpy())
    )
    learned = regression.coef_.size + 1
    return judged(torch.tensor(said), [label for _, label in test]) | {
        "kept_bytes": 4 * learned,
        "learned": learned,
        "steps": 0,
        "train_s": train_s,
        "test_s": test_s,
    }


def run(config, device, parts=None):
    """Lets every contestant answer; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``contestants``: by key of `NAMES` what `asked` gives, and ``parameters`` of the base),
        ``curves`` of those that train, and ``data``.

    Raises:
        ValueError: a contestant is unknown.
        ImportError: scikit-learn is missing.
    """
    unknown = set(config.contestants) - NAMES.keys()
    if unknown:
        raise ValueError(f"the contestants {sorted(unknown)} are none, expected some of {', '.join(NAMES)}")
    if "minilm" in config.contestants:
        fine_tuning.need("sklearn")
    parts, found, curves = parts or Parts(), {}, {}
    with bases.one_thread():
        for name in config.contestants:
            if name == "minilm":
                found[name] = parts(name, regressed, config)
            else:
                found[name] = parts(name, asked, name, config, parts, name, device)
            if "curves" in found[name]:
                curves[name] = found[name].pop("curves")
    metrics = {"contestants": found}
    metrics["headline"] = headline(metrics)
    weights = ["minilm"] if "minilm" in config.contestants else []
    data = fine_tuning.checksums(config.made, ("rt_polarity", ["rt-polarity.neg", "rt-polarity.pos"]), weights)
    return {"metrics": metrics, "curves": curves, "data": data | bases.checksums(config.base)}


def headline(metrics):
    """Accuracies and what is kept, in a sentence."""
    rows = metrics["contestants"]
    phrases = [f"{row['accuracy']:.1%} ({NAMES[name]}, {row['kept_bytes']:,} bytes)" for name, row in rows.items()]
    error = max(row["error"] for row in rows.values())
    return f"test accuracy {', '.join(phrases)}; standard error at most {error:.1%}"
