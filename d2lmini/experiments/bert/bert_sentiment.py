"""Chapter 13: is a sentence for the film or against it? What pretraining is worth, by the number of labels.

Five contestants learn from 1, 10 and 100 % of the labels: a bag of words; a small encoder from scratch; the same
encoder after our own pretraining; the published six-layer weights, fine-tuned; and these weights as they are, with a
logistic regression on their sentence vectors. All are tested on the same fold of sentence polarity. Its validation fold
chooses the moment at which a training is scored, and the strength of the regressions, nothing else; it is as large for
1 % of the labels as for all, for every contestant.
"""

from dataclasses import dataclass, replace

import torch

from d2lmini.data.sentiment import SentencePolarity
from d2lmini.experiments.bert import bert_pretrain, classes, fine_tuning
from d2lmini.experiments.bert.fine_tuning import Tuning
from d2lmini.experiments.bert.toy_texts import MadeReviews
from d2lmini.experiments.gpt import language
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.heads import POOLINGS, TextHead
from d2lmini.tokenization.fast_bpe import BPETokenizer

NAMES = {
    "bag": "bag of words",
    "scratch": "from scratch",
    "own": "own pretraining",
    "frozen": "MiniLM as it is",
    "minilm": "MiniLM fine-tuned",
}
_OWN = bert_pretrain.PRESETS["laptop"]
_TUNING = Tuning(lr=3e-4, epochs=4, min_steps=60)
_MINILM = Tuning(epochs=3, min_steps=60)


@dataclass(frozen=True)
class Config:
    """Settings.

    ``contestants`` are keys of `NAMES`; ``own`` says how the small encoder is pretrained, which also makes that from
    scratch. Of the training labels each of ``shares`` is drawn as often as ``draws`` says, without overlap where there
    are enough; the draw of a whole is another seed. With less than all labels the validation data choose among
    ``few_checks`` moments of a training. ``made`` takes sentences made by rule, which need no data. Of the sentences
    ``shown`` of a kind are kept. ``probed`` training sentences, if any, teach a logistic regression on what each block
    of the fine-tuned weights says, and on what it said before.
    """

    made: bool = False
    fold: int = 0
    max_len: int = 64
    contestants: tuple = tuple(NAMES)
    shares: tuple = (0.01, 0.1, 1.0)
    draws: tuple = (3, 3, 1)
    own: bert_pretrain.Config = _OWN
    pooling: str = "mean"
    small: Tuning = _TUNING
    minilm: Tuning = _MINILM
    few_checks: int = 1
    shown: int = 4
    probed: int = 800
    seeds: tuple = (0,)


_SMALL = Tuning(lr=1e-3, epochs=1, min_steps=2, batch_size=16, checks=2, precision="float32")
PRESETS = {
    "smoke": Config(
        made=True, max_len=24, contestants=("bag", "scratch", "own"), shares=(0.02, 0.05), draws=(2, 1),
        own=bert_pretrain.PRESETS["smoke"], small=_SMALL, shown=2, probed=0,
    ),
    # sentences made by rule, in which the last clause decides
    "cpu": Config(
        made=True, contestants=("bag", "scratch", "own"), own=bert_pretrain.PRESETS["cpu"],
        small=replace(_SMALL, epochs=8, min_steps=60, checks=3), probed=0,
    ),
    "laptop": Config(small=replace(_TUNING, precision="bf16"), minilm=replace(_MINILM, precision="bf16")),
    "full": Config(
        draws=(10, 5, 3), own=bert_pretrain.PRESETS["full"], small=replace(_TUNING, epochs=8, min_steps=200),
        minilm=replace(_MINILM, min_steps=200), probed=4_000,
    ),
}  # fmt: skip


def read(config, tokenizer):
    """The data of a configuration, for a tokenizer."""
    if config.made:
        return MadeReviews(tokenizer, max_len=config.max_len, truncate=True)
    return SentencePolarity(tokenizer, max_len=config.max_len, fold=config.fold, truncate=True)


def part_of_labels(number, share, draw):
    """The places of a share of the training sentences, whose order lets the classes take turns.

    Args:
        number: of training sentences.
        share: above 0 and at most 1.
        draw: number of the draw: the first follow each other, then it begins again.

    Returns:
        list of int.

    Raises:
        ValueError: the share is outside of its range, or less than a sentence of each class.
    """
    count = round(share * number)
    if not 0 < share <= 1 or count < 2:
        raise ValueError(f"the share is {share}, {count} of {number} sentences: expected two or more, and at most all")
    start = draw % (number // count) * count
    return list(range(start, start + count))


def bag_of_words(examples, places):
    """Words and pairs of words, weighted by how rare they are in the training sentences; see `regress`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    examples = examples | {"train": [examples["train"][place] for place in places]}
    texts, labels = ({split: [row[i] for row in rows] for split, rows in examples.items()} for i in (0, 1))
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    features = {"train": vectors.fit_transform(texts["train"])}
    features |= {split: vectors.transform(texts[split]) for split in ("val", "test")}
    return classes.regress(features, labels) | {"features": len(vectors.vocabulary_)}


def tune(encoder, tokenizer, places, config, tuning, device, seed, parts, name):
    """Fine-tunes an encoder on some of the training sentences: what `fine_tuning.fine_tune` gives, and the head."""
    data = read(config, tokenizer)
    torch.manual_seed(seed)
    head = TextHead(encoder, 2, config.pooling)

    def score(split):
        scores = classes.logits(head, data, split)
        if split == "test":
            return classes.rounded(scores)
        return classes.chosen_by(scores, classes.labels_of(data, split))

    record, history = fine_tuning.fine_tune(
        head, data, places, tuning, device, score, seed=seed, parts=parts, name=name
    )
    return record, history, head


def probe(encoder, tokenizer, config, device):
    """Test accuracies of logistic regressions on what each block says: dict from a pooling to a list of L + 1."""
    data = read(config, tokenizer)
    number = len(data.examples("train"))
    places = part_of_labels(number, min(1, config.probed / number), 0)
    labels = {split: classes.labels_of(data, split) for split in ("val", "test")}
    labels["train"] = [data.examples("train")[place][1] for place in places]
    said = {split: classes.features(encoder, data, split, device) for split in ("val", "test")}
    said["train"] = classes.features(encoder, data, "train", device, places)
    accuracies = {}
    for name in ("class", "mean"):
        accuracies[name] = []
        for layer in range(len(said["train"][name])):
            center, width = said["train"][name][layer].mean(0), said["train"][name][layer].std(0).clamp(min=1e-6)
            scaled = {split: ((rows[name][layer] - center) / width).numpy() for split, rows in said.items()}
            accuracies[name].append(classes.accuracy(classes.regress(scaled, labels)["test"], labels["test"]))
    return accuracies


def frozen(encoder, tokenizer, config, device):
    """Logistic regressions on the sentence vectors of an encoder that does not learn: dict from share to draws."""
    data = read(config, tokenizer)
    vectors = {split: classes.features(encoder, data, split, device)["mean"][-1] for split in data.splits}
    vectors = {split: (rows / rows.norm(dim=1, keepdim=True)).numpy() for split, rows in vectors.items()}
    labels, by_share = {split: classes.labels_of(data, split) for split in data.splits}, {}
    for share, draw in _draws(config, whole_once=True):
        places = part_of_labels(len(labels["train"]), share, draw)
        chosen = {"train": [labels["train"][place] for place in places]}
        record = classes.regress(vectors | {"train": vectors["train"][places]}, labels | chosen)
        by_share.setdefault(_percent(share), []).append(record)
    return by_share


def run(config, device, parts=None):
    """Lets every contestant learn from every share of the labels; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``, ``curves`` of each training and ``data``. The metrics are ``examples`` (how many of each
        split), ``labels`` (those of the test sentences), ``contestants`` (by name and percent: lists with a value a
        draw, ``scores`` of the test sentences of the first draw, and ``mean`` and ``spread`` of the accuracies),
        ``best`` (name, accuracy, its standard error, confusion counts), ``sentences`` and ``probe``.

    Raises:
        ValueError: a contestant or a pooling is unknown, or shares and draws do not fit together.
        ImportError: scikit-learn is missing.
    """
    unknown = set(config.contestants) - NAMES.keys()
    if unknown or len(config.shares) != len(config.draws) or config.pooling not in POOLINGS:
        raise ValueError(
            f"contestants are {config.contestants}, shares {config.shares}, draws {config.draws} and the pooling "
            f"{config.pooling!r}: expected some of {', '.join(NAMES)}, as many draws as shares, and one of "
            f"{', '.join(POOLINGS)}"
        )
    fine_tuning.need("sklearn")
    parts = parts or Parts()
    plain = read(config, BPETokenizer.train(["none is read with it"], 260))
    examples = {split: plain.examples(split) for split in plain.splits}
    encoders = fine_tuning.Encoders(own=lambda: bert_pretrain.pretrained(config.own, device, parts))
    trained, curves, by_contestant = {}, {}, {}

    def learn(contestant, share, draw, name):
        seed = config.seeds[0] + draw
        if contestant == "scratch":
            encoder, tokenizer = encoders("own")
            encoder = fine_tuning.fresh(encoder.config, seed)
        else:
            encoder, tokenizer = encoders(contestant)
        data = read(config, tokenizer)
        places = part_of_labels(len(data.examples("train")), share, draw)
        tuning = config.minilm if contestant == "minilm" else config.small
        if share < 1:
            tuning = replace(tuning, checks=config.few_checks)
        result, history, head = tune(encoder, tokenizer, places, config, tuning, device, seed, parts, name)
        result |= {"parameters": head.num_parameters}
        if contestant == "minilm" and config.probed and share == max(config.shares) and draw == 0:
            before, _ = encoders("minilm")
            result["probe"] = {
                "before": probe(before, tokenizer, config, device),
                "after": probe(head.encoder, tokenizer, config, device),
            }
        return result | {"curves": fine_tuning.curves(history)}

    for contestant in config.contestants:
        rows = trained[contestant] = {}
        if contestant == "frozen":
            rows |= parts("frozen", lambda: frozen(*encoders("minilm"), config, device))
            continue
        if contestant in ("scratch", "own"):
            encoders("own")  # a part of its own, before those that need it
        for share, draw in _draws(config, whole_once=contestant == "bag"):
            name = f"{contestant}, {_percent(share)}, {draw}"
            if contestant == "bag":
                places = part_of_labels(len(examples["train"]), share, draw)
                result = parts(name, bag_of_words, examples, places)
            else:
                result = parts(name, learn, contestant, share, draw, name)
                curves[name] = result.pop("curves")
            rows.setdefault(_percent(share), []).append(result)
    labels = classes.labels_of(plain, "test")
    for contestant, rows in trained.items():
        by_contestant[contestant] = {percent: summarised(records, labels) for percent, records in rows.items()}
    whole = _percent(max(config.shares))
    scores = {contestant: rows[whole]["scores"] for contestant, rows in by_contestant.items()}
    best = max(scores, key=lambda contestant: classes.accuracy(scores[contestant], labels))
    metrics = {
        "examples": {split: len(rows) for split, rows in examples.items()},
        "labels": labels,
        "shares": {_percent(share): round(share * len(examples["train"])) for share in config.shares},
        "contestants": by_contestant,
        "best": {"contestant": best, "name": NAMES[best], **classes.judged(scores[best], labels)},
        "sentences": classes.sentences(examples["test"], scores, best, config.shown),
        "probe": next(
            (result["probe"] for result in trained.get("minilm", {}).get(whole, []) if "probe" in result), None
        ),
    }
    accuracies = [f"{by_contestant[name][whole]['mean']:.1%} ({NAMES[name]})" for name in config.contestants]
    few = _percent(min(config.shares))
    few_accuracies = [f"{by_contestant[name][few]['mean']:.1%}" for name in config.contestants]
    metrics["headline"] = (
        f"test accuracy with {whole} of the labels {', '.join(accuracies)}; with {few} of them "
        f"{', '.join(few_accuracies)}; standard error {metrics['best']['standard_error']:.1%}"
    )
    files = "rt_polarity", ["rt-polarity.neg", "rt-polarity.pos"]
    weights = ["minilm"] if {"minilm", "frozen"} & set(config.contestants) else []
    record = fine_tuning.checksums(config.made, files, weights)
    if {"scratch", "own"} & set(config.contestants):
        record |= language.text_checksums(config.own.text)
    return {"metrics": metrics, "curves": curves, "data": record}


def summarised(records, labels):
    """The draws of a contestant at one share of the labels, as lists and with what they are on average."""
    tested = [classes.accuracy(record["test"], labels) for record in records]
    kept = ("passes", "steps", "train_s", "C", "features")
    others = {key: [record[key] for record in records] for key in kept if key in records[0]}
    if "parameters" in records[0]:
        others["parameters"] = records[0]["parameters"]
    return {
        "test_accuracy": tested,
        **summaries.summary(tested),
        "val_accuracy": [record["val"]["chosen_by"] for record in records],
        "val_loss": [record["val"]["loss"] for record in records],
        "scores": records[0]["test"],
        **others,
    }


def _draws(config, whole_once=False):
    """Each share of the labels with the numbers of its draws; of the whole there is one where no seed matters."""
    for share, draws in zip(config.shares, config.draws, strict=True):
        yield from ((share, draw) for draw in range(1 if whole_once and share == 1 else draws))


def _percent(share):
    return f"{100 * share:g} %"
