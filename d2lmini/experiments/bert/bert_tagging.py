"""Chapter 13: names of persons, places and things in what people write on the web, most of which nobody has seen.

WNUT-17 in its official split. Four contestants tag each word: two dictionaries made of the training data, a small
encoder from scratch, and the published six-layer weights, fine-tuned. An entity counts where both ends and the type are
right. The validation split chooses the moment of a training that is scored.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from d2lmini.data.tagging import ENTITIES, EmergingEntities
from d2lmini.experiments.bert import fine_tuning
from d2lmini.experiments.bert.fine_tuning import Tuning
from d2lmini.experiments.bert.toy_texts import MadeNames
from d2lmini.lab.parts import Parts
from d2lmini.metrics import span_f1
from d2lmini.models.bert_config import BERT_CONFIGS, MODERN, BERTConfig
from d2lmini.models.heads import TaggingHead
from d2lmini.tokenization.fast_bpe import BPETokenizer

NAMES = {
    "words": "each word's most frequent tag",
    "names": "names of the training data",
    "scratch": "from scratch",
    "minilm": "MiniLM fine-tuned",
}
_ENCODER = BERTConfig(max_len=256, num_hiddens=192, num_heads=3, num_blks=4, **MODERN)
_TUNING = Tuning(lr=5e-4, epochs=8, checks=4)
_MINILM = Tuning(lr=1e-4, epochs=4, checks=4)


@dataclass(frozen=True)
class Config:
    """Settings.

    ``contestants`` are keys of `NAMES`. ``encoder``, with a vocabulary of ``vocab_size``, learns from scratch. ``made``
    takes sentences made by rule, which need no data. Of the test sentences with a new name ``shown`` are kept.
    """

    made: bool = False
    max_len: int = 256
    contestants: tuple = tuple(NAMES)
    encoder: BERTConfig = _ENCODER
    vocab_size: int = 8_192
    scratch: Tuning = _TUNING
    minilm: Tuning = _MINILM
    shown: int = 6
    seeds: tuple = (0,)


_SMALL = Tuning(lr=1e-3, epochs=2, batch_size=16, checks=2, precision="float32")
PRESETS = {
    "smoke": Config(
        made=True, max_len=64, contestants=("words", "names", "scratch"), encoder=BERT_CONFIGS["toy"], vocab_size=320,
        scratch=replace(_SMALL, batch_size=64), shown=2,
    ),
    # sentences made by rule, whose names are new
    "cpu": Config(
        made=True, max_len=64, contestants=("words", "names", "scratch"), encoder=BERT_CONFIGS["toy"], vocab_size=400,
        scratch=replace(_SMALL, lr=2e-3, epochs=15, checks=3),
    ),
    "laptop": Config(scratch=replace(_TUNING, precision="bf16"), minilm=replace(_MINILM, precision="bf16")),
    "full": Config(minilm=replace(_MINILM, epochs=10, checks=10), seeds=(0, 1, 2, 3, 4)),
}  # fmt: skip


def read(config, tokenizer):
    """The data of a configuration, for a tokenizer."""
    return (MadeNames if config.made else EmergingEntities)(tokenizer, max_len=config.max_len)


def entities(tags):
    """The entities in the tags of sentences: list of (number of the sentence, first word, last word, type)."""
    from seqeval.metrics.sequence_labeling import get_entities

    return [(i, start, end, kind) for i, row in enumerate(tags) for kind, start, end in get_entities(row)]


def tags_of(spans, sentences):
    """The tags of sentences with these entities: the inverse of `entities`."""
    tags = [["O"] * len(words) for words in sentences]
    for sentence, start, end, kind in spans:
        tags[sentence][start : end + 1] = [f"B-{kind}", *[f"I-{kind}"] * (end - start)]
    return tags


def surface(words, start, end):
    """What stands there, in lower case: words ``start`` to ``end``, that one included."""
    return " ".join(words[start : end + 1]).lower()


def most_frequent_tags(train, sentences):
    """The tags of sentences by each word's most frequent one in the training data; ``O`` for a new word."""
    counts = defaultdict(Counter)
    for words, tags in train:
        for word, tag in zip(words, tags, strict=True):
            counts[word.lower()][tag] += 1
    known = {word: max(sorted(tags), key=tags.get) for word, tags in counts.items()}
    return [[known.get(word.lower(), "O") for word in words] for words in sentences]


def known_names(train, sentences):
    """The tags of sentences whose only entities are those of the training data, the longest first."""
    counts = defaultdict(Counter)
    for sentence, start, end, kind in entities([tags for _, tags in train]):
        counts[tuple(word.lower() for word in train[sentence][0][start : end + 1])][kind] += 1
    longest, spans = max(map(len, counts), default=0), []
    for number, words in enumerate(sentences):
        lower, place = tuple(word.lower() for word in words), 0
        while place < len(lower):
            lengths = range(min(longest, len(lower) - place), 0, -1)
            length = next((length for length in lengths if lower[place : place + length] in counts), 0)
            if length:
                kinds = counts[lower[place : place + length]]
                spans.append((number, place, place + length - 1, max(sorted(kinds), key=kinds.get)))
            place += length or 1
    return tags_of(spans, sentences)


def scores(predicted, right, sentences, seen):
    """What is counted of the entities found in sentences.

    Args:
        predicted, right: entities, as `entities` gives them.
        sentences: list of lists of words.
        seen: set of surfaces that the training data have as entities.

    Returns:
        dict with ``precision``, ``recall`` and ``f1`` from 0 to 100, ``by_type`` (the same of each type, and
        ``entities``, how many are right), and ``recall_seen`` and ``recall_new``, of entities whose surface is in
        ``seen`` and of the others; None where there are none.
    """

    def score(kind=None):
        chosen = ([entity for entity in side if kind in (None, entity[3])] for side in (predicted, right))
        return span_f1(*(tags_of(side, sentences) for side in chosen))._asdict()

    def recall(known):
        wanted = [entity for entity in right if (surface(sentences[entity[0]], *entity[1:3]) in seen) == known]
        return 100 * len(set(map(tuple, predicted)) & set(wanted)) / len(wanted) if wanted else None

    counts = Counter(kind for *_, kind in right)
    by_type = {kind: score(kind) | {"entities": counts[kind]} for kind in ENTITIES}
    return score() | {"by_type": by_type, "recall_seen": recall(True), "recall_new": recall(False)}


def novelty(train, test):
    """How much of the test is new.

    Args:
        train, test: lists of (words, tags).

    Returns:
        dict with the shares ``words`` (of the test's words, those that training has not), ``entities`` (mentions whose
        surface is no entity of training), ``surfaces`` (the same, each surface once) and ``by_type`` (of mentions).
    """
    known = {word.lower() for words, _ in train for word in words}
    seen = surfaces(train)
    words = [word.lower() not in known for row, _ in test for word in row]
    mentions = [(surface(test[i][0], *place), kind) for i, *place, kind in entities([tags for _, tags in test])]
    by_type = {kind: [text not in seen for text, other in mentions if other == kind] for kind in ENTITIES}
    return {
        "words": _share(words),
        "entities": _share([text not in seen for text, _ in mentions]),
        "surfaces": _share([text not in seen for text in {text for text, _ in mentions}]),
        "by_type": {kind: _share(new) for kind, new in by_type.items()},
    }


def surfaces(examples):
    """The surfaces of all entities of examples, a set."""
    return {surface(examples[i][0], *place) for i, *place, _ in entities([tags for _, tags in examples])}


def _share(flags):
    return sum(flags) / len(flags) if flags else None


def tagged(head, data, split):
    """The tags of words that a model gives to the sentences of a split."""
    tag_ids = [batch.argmax(-1) for batch in fine_tuning.outputs(head, data.loader(split, shuffle=False))]
    return data.word_tags([words for words, _ in data.examples(split)], data.in_order(split, tag_ids))


def learn(contestant, seed, encoders, config, device, parts, name):
    """Fine-tunes an encoder: a dict with ``found``, the entities of the test, and how it was trained."""
    encoder, data, tuning = fine_tuning.begin(contestant, seed, encoders, config, read)
    head = TaggingHead(encoder, len(data.tag_names))

    def score(split):
        tags = tagged(head, data, split)
        if split == "test":
            return entities(tags)
        return {"chosen_by": span_f1(tags, [tags for _, tags in data.examples("val")]).f1}

    places = list(range(len(data.examples("train"))))
    record, history = fine_tuning.fine_tune(
        head, data, places, tuning, device, score, seed=seed, parts=parts, name=name
    )
    record["found"] = record.pop("test")
    return record | {"parameters": head.num_parameters, "curves": fine_tuning.curves(history)}


def run(config, device, parts=None):
    """Lets every contestant tag the test sentences; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``, ``curves`` of each training and ``data``. The metrics are ``examples`` (how many of each
        split), ``right`` (the test's entities as `entities` gives them), ``novelty``, ``contestants`` (of each, of the
        first seed what `scores` gives and ``found``, and of all seeds ``f1_seeds``), and ``sentences``: the first of
        the test with a name that is new, and what each contestant found there.

    Raises:
        ValueError: a contestant is unknown.
        ImportError: seqeval is missing.
    """
    if set(config.contestants) - NAMES.keys():
        raise ValueError(f"contestants are {config.contestants}, expected some of {', '.join(NAMES)}")
    fine_tuning.need("seqeval")
    parts = parts or Parts()
    plain = read(config, BPETokenizer.train(["none is read with it"], 260))
    train, test = plain.examples("train"), plain.examples("test")
    sentences, tags = (list(column) for column in zip(*test, strict=True))
    texts = [" ".join(words) for words, _ in train]
    encoders = fine_tuning.Encoders(scratch=lambda: fine_tuning.from_scratch(config.encoder, texts, config.vocab_size))
    right, seen, by_contestant, curves = entities(tags), surfaces(train), {}, {}
    for contestant in config.contestants:
        if contestant in ("words", "names"):
            rule = most_frequent_tags if contestant == "words" else known_names
            seed_records = [parts(contestant, lambda rule=rule: {"found": entities(rule(train, sentences))})]
        else:
            seed_records = []
            for seed in config.seeds:
                name = f"{contestant}, {seed}"
                seed_records.append(parts(name, learn, contestant, seed, encoders, config, device, parts, name))
                curves[name] = seed_records[-1].pop("curves")
        counted = [
            scores([tuple(entity) for entity in record["found"]], right, sentences, seen) for record in seed_records
        ]
        by_contestant[contestant] = seed_records[0] | counted[0] | {"f1_seeds": [record["f1"] for record in counted]}
    new = [i for i, *place, _ in right if surface(sentences[i], *place) not in seen]
    kept = list(dict.fromkeys(new))[: config.shown]
    metrics = {
        "examples": {split: len(plain.examples(split)) for split in plain.splits},
        "right": right,
        "novelty": novelty(train, test),
        "contestants": by_contestant,
        "sentences": [_shown(i, sentences[i], right, by_contestant) for i in kept],
    }
    phrases = [f"{by_contestant[name]['f1']:.1f} ({NAMES[name]})" for name in config.contestants]
    metrics["headline"] = (
        f"F1 of entities {', '.join(phrases)}; of the test's entities {metrics['novelty']['entities']:.0%} are new"
    )
    files = "wnut17", ["wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"]
    return {
        "metrics": metrics,
        "curves": curves,
        "data": fine_tuning.checksums(config.made, files, config.contestants),
    }


def _shown(number, words, right, by_contestant):
    def here(several):
        return [[surface(words, *place), kind] for i, *place, kind in several if i == number]

    others = {contestant: here(record["found"]) for contestant, record in by_contestant.items()}
    return {"words": words, "right": here(right), "found": others}
