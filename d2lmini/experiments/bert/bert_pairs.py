"""Chapter 13: do two sentences mean the same? One sequence of both, or two vectors.

The pairs are those of `d2lmini.data.paraphrases`, in which neither lengths nor the number of shared words tells. A
cross-encoder reads both sentences at once; a bi-encoder reads each alone, and the cosine of the two vectors is all that
is compared, so that vectors of many sentences can be kept. Beside them stand regressions on the words that the two
share, and a cross-encoder from scratch. The validation pairs choose the moment of a training that is scored, and the
strength of the regressions.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from d2lmini.data.paraphrases import Paraphrases, overlap, written_out
from d2lmini.experiments.bert import classes, fine_tuning
from d2lmini.experiments.bert.fine_tuning import Tuning
from d2lmini.experiments.bert.toy_texts import MadePairs
from d2lmini.lab.parts import Parts
from d2lmini.models.bert_config import BERT_CONFIGS, MODERN, BERTConfig
from d2lmini.models.heads import PairHead
from d2lmini.models.weights.minilm import sentence_embeddings
from d2lmini.tokenization.fast_bpe import BPETokenizer

NAMES = {
    "overlap": "share of common words",
    "words": "bag of common and other words",
    "scratch": "cross-encoder from scratch",
    "vectors": "cosine of MiniLM's vectors",
    "minilm": "cross-encoder MiniLM",
}
_ENCODER = BERTConfig(max_len=128, num_hiddens=192, num_heads=3, num_blks=4, **MODERN)
_TUNING = Tuning(lr=5e-4, epochs=8, checks=4)
_MINILM = Tuning(lr=1e-4, epochs=5, checks=5)


@dataclass(frozen=True)
class Config:
    """Settings.

    ``contestants`` are keys of `NAMES`. ``encoder``, with a vocabulary of ``vocab_size``, learns from scratch. ``made``
    takes pairs made by rule, which need no data. Of the test pairs ``shown`` of a kind are kept.
    """

    made: bool = False
    max_len: int = 64
    contestants: tuple = tuple(NAMES)
    encoder: BERTConfig = _ENCODER
    vocab_size: int = 4_096
    pooling: str = "mean"
    scratch: Tuning = _TUNING
    minilm: Tuning = _MINILM
    shown: int = 4
    seeds: tuple = (0,)


_SMALL = Tuning(lr=1e-3, epochs=2, batch_size=64, checks=2, precision="float32")
PRESETS = {
    "smoke": Config(
        made=True, contestants=("overlap", "words", "scratch"), encoder=BERT_CONFIGS["toy"], vocab_size=300,
        scratch=_SMALL, shown=2,
    ),
    # pairs made by rule: who did what to whom
    "cpu": Config(
        made=True, contestants=("overlap", "words", "scratch"), encoder=BERT_CONFIGS["toy"], vocab_size=320,
        scratch=replace(_SMALL, lr=2e-3, epochs=40, batch_size=32, checks=4),
    ),
    "laptop": Config(scratch=replace(_TUNING, precision="bf16"), minilm=replace(_MINILM, precision="bf16")),
    "full": Config(minilm=replace(_MINILM, epochs=8, checks=8), seeds=(0, 1, 2, 3, 4)),
}  # fmt: skip


def read(config, tokenizer):
    """The data of a configuration, for a tokenizer."""
    return (MadePairs if config.made else Paraphrases)(tokenizer, max_len=config.max_len)


def by_overlap(examples):
    """A regression on the share of common words, by itself; see `classes.regress`."""
    features = {split: [[overlap(*pair[:2])] for pair in pairs] for split, pairs in examples.items()}
    return classes.regress(features, _labels(examples))


def by_words(examples):
    """A regression on which words both sentences have, and on which one alone has."""
    from sklearn.feature_extraction import DictVectorizer

    def counted(first, second):
        first, second = (set(written_out(text).split()) for text in (first, second))
        return {f"{word} in both": 1 for word in first & second} | {f"{word} in one": 1 for word in first ^ second}

    vectors = DictVectorizer()
    rows = {split: [counted(*pair[:2]) for pair in pairs] for split, pairs in examples.items()}
    features = {"train": vectors.fit_transform(rows["train"])}
    features |= {split: vectors.transform(rows[split]) for split in ("val", "test")}
    return classes.regress(features, _labels(examples))


def by_vectors(encoder, tokenizer, examples, device):
    """A regression on the cosine of two vectors, each of one sentence alone; nothing else is learned.

    Returns:
        what `classes.regress` gives, and ``cosines`` of the test pairs.
    """
    cosines = {}
    for split, pairs in examples.items():
        firsts, seconds, _ = zip(*pairs, strict=True)
        sides = (sentence_embeddings(encoder.to(device).eval(), tokenizer, list(side)) for side in (firsts, seconds))
        cosines[split] = torch.linalg.vecdot(*sides).cpu().double().numpy()
    features = {split: np.expand_dims(values, 1) for split, values in cosines.items()}
    record = classes.regress(features, _labels(examples))
    return record | {"cosines": [round(value, 4) for value in cosines["test"].tolist()]}


def learn(contestant, seed, encoders, config, device, parts, name):
    """Fine-tunes a cross-encoder: what `fine_tuning.fine_tune` gives, and its curves."""
    encoder, data, tuning = fine_tuning.begin(contestant, seed, encoders, config, read)
    head = PairHead(encoder, 2, config.pooling)

    def score(split):
        scores = classes.logits(head, data, split)
        if split == "test":
            return classes.rounded(scores)
        return classes.chosen_by(scores, classes.labels_of(data, split))

    places = list(range(len(data.examples("train"))))
    record, history = fine_tuning.fine_tune(
        head, data, places, tuning, device, score, seed=seed, parts=parts, name=name
    )
    return record | {"parameters": head.num_parameters, "curves": fine_tuning.curves(history)}


def run(config, device, parts=None):
    """Lets every contestant judge the test pairs; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``, ``curves`` of each training and ``data``. The metrics are ``examples`` (how many of each
        split), ``labels`` of the test pairs, ``contestants`` (of each, of the first seed what `classes.judged` gives,
        ``scores`` of the test pairs and how it was trained; of all seeds ``accuracy_seeds``), and ``pairs``: those that
        the cosine and the cross-encoder (if there are both) judge differently and of which either is right.

    Raises:
        ValueError: a contestant is unknown.
        ImportError: scikit-learn is missing.
    """
    if set(config.contestants) - NAMES.keys():
        raise ValueError(f"contestants are {config.contestants}, expected some of {', '.join(NAMES)}")
    fine_tuning.need("sklearn")
    parts = parts or Parts()
    plain = read(config, BPETokenizer.train(["none is read with it"], 260))
    examples = {split: plain.examples(split) for split in plain.splits}
    texts = [text for pair in examples["train"] for text in pair[:2]]
    encoders = fine_tuning.Encoders(scratch=lambda: fine_tuning.from_scratch(config.encoder, texts, config.vocab_size))
    rules = {
        "overlap": lambda: by_overlap(examples),
        "words": lambda: by_words(examples),
        "vectors": lambda: by_vectors(*encoders("minilm"), examples, device),
    }
    labels, by_contestant, curves = classes.labels_of(plain, "test"), {}, {}
    for contestant in config.contestants:
        if contestant in rules:
            seed_records = [parts(contestant, rules[contestant])]
        else:
            seed_records = []
            for seed in config.seeds:
                name = f"{contestant}, {seed}"
                seed_records.append(parts(name, learn, contestant, seed, encoders, config, device, parts, name))
                curves[name] = seed_records[-1].pop("curves")
        tested = [classes.accuracy(record["test"], labels) for record in seed_records]
        first = seed_records[0] | classes.judged(seed_records[0]["test"], labels) | {"accuracy_seeds": tested}
        by_contestant[contestant] = first | {"scores": first.pop("test")}
    metrics = {
        "examples": {split: len(pairs) for split, pairs in examples.items()},
        "labels": labels,
        "contestants": by_contestant,
        "pairs": between("vectors", "minilm", by_contestant, examples["test"], config.shown),
    }
    accuracies = [f"{by_contestant[name]['accuracy']:.1%} ({NAMES[name]})" for name in config.contestants]
    error = max(record["standard_error"] for record in by_contestant.values())
    metrics["headline"] = f"test accuracy {', '.join(accuracies)}; standard error at most {error:.1%}"
    weights = ["minilm"] if {"minilm", "vectors"} & set(config.contestants) else []
    files = "tatoeba_enfr", ["fra-eng.zip"]
    return {"metrics": metrics, "curves": curves, "data": fine_tuning.checksums(config.made, files, weights)}


def between(contestant, other, by_contestant, examples, shown):
    """Pairs that two contestants judge differently: dict from who is right to the pairs that the other is surest of."""
    kept = {}
    for right, wrong in ((contestant, other), (other, contestant)):
        if not {contestant, other} <= by_contestant.keys():
            continue
        judged = zip(examples, by_contestant[right]["scores"], by_contestant[wrong]["scores"], strict=True)
        pairs = [
            {"texts": list(texts), "label": label, "scores": {right: a, wrong: b}}
            for (*texts, label), a, b in judged
            if (a > 0) == bool(label) != (b > 0)
        ]
        kept[right] = sorted(pairs, key=lambda pair: -abs(pair["scores"][wrong]))[:shown]
    return kept


def _labels(examples):
    return {split: [pair[-1] for pair in pairs] for split, pairs in examples.items()}
