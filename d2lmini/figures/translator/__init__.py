"""Figure of the front page and of chapters 05 to 07: a translator of this book, at work in the page."""

from contextlib import contextmanager
from functools import cache

import torch

from ... import results
from ...data.grammar import make_sentences
from ...data.tatoeba import clean
from ...models.weights import files
from ...models.weights.trained import trained
from ...position import sinusoidal
from ..live.page import LiveFigure

PARTS = {"heads": "heads", "beam": "beam", "later": "later words", "positions": "positions"}
KINDS = {"order": "in order", "shuffled": "shuffled", "none": "left out", "shifted": "shifted"}
TESTED = 50  # sentences


def _far_from_eight_words(sentence):
    return abs(len(sentence.split()) - 8)


class LiveTranslator(LiveFigure):
    """A sentence that the reader types becomes French piece by piece, and its cross-attention is drawn.

    Args:
        weights: name of exported weights of a `Transformer`, or several names: the first of which there are weights.
        parts: what else the page offers. "heads": each head can be switched off, and the model is scored over fifty
            test sentences: exact translations of the grammar's sentences, BLEU of others. "beam": beam search next to
            greedy decoding. "later": other words later in the target, and how far earlier scores move. "positions":
            positions shuffled, left out and shifted.
        examples: sentences to choose from; None: five of the test sentences, of about eight words.

    Raises:
        ValueError: there is no such part, no example, or there are no such weights.
        WeightsError: the file of weights is damaged, or of another version.
    """

    name = "live_translator"
    title = "A translator in this page"
    hint = (
        "Type an English sentence or choose one. Point at a French word: lines lead to the English words that "
        "the model looked at. By keyboard: arrow keys go from word to word."
    )

    def __init__(self, weights="translator_grammar", parts=(), examples=None):
        names = [weights] if isinstance(weights, str) else list(weights)
        weights = next((name for name in names if name in files.names()), names[-1])
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            raise ValueError(f"parts has {', '.join(map(repr, unknown))}, expected some of {', '.join(PARTS)}")
        model = trained(weights)
        if examples is None:  # long enough that words cross
            examples = sorted((source for source, _ in test_sentences(weights)), key=_far_from_eight_words)[:5]
        examples = list(examples)
        if not examples:
            raise ValueError("there are no examples: expected at least one sentence")
        run = f"{model.trained.experiment} {model.trained.preset}"
        shown = [[text, translate(model, text)] for text in examples]
        header = ["English", "French"]
        if "positions" in parts:
            header = ["English", "positions", "French"]
            shown = [
                [text, said, translate(model, text, **places(model, text, kind))]
                for text in examples[:2]
                for kind, said in KINDS.items()
            ]
        tested = test_sentences(weights) if "heads" in parts else []
        super().__init__(
            f"Translates English into French with the model of {run}: type a sentence.",
            weights,
            (f"What the model writes; it is from the run {run}.", header, shown),
            size=[model.config.num_blks, model.config.num_heads],
            examples=examples,
            parts={part: PARTS[part] for part in PARTS if part in parts},
            tested={
                "sentences": [source for source, _ in tested],
                "references": [french for _, french in tested],
                "metric": "exact" if weights == "translator_grammar" else "bleu",
            },
            text=examples[0],
            off=[],
        )


@cache
def test_sentences(weights):
    """Fifty pairs that the model of these weights was not trained on. Returns: list of (English, French)."""
    if weights == "translator_grammar":
        config = files.read(files.path_of(weights)).metadata["run"]["config"]
        made = make_sentences(config["num_pairs"], config["seeds"][0])
        return [(pair.english, pair.french) for pair in made["test"][:TESTED]]
    rows = sorted(_record(weights)["metrics"]["samples"], key=lambda row: row["source"])  # not the best ones first
    return [(row["source"], row["reference"]) for row in rows[:TESTED]]


def _record(weights):
    """The record of the run, else the largest of the experiment: both hold sentences of one test split."""
    run = files.read(files.path_of(weights)).metadata["run"]
    try:
        return results.load(run["experiment"], run["preset"])
    except FileNotFoundError:
        return results.largest(run["experiment"])[0]


@torch.no_grad()
def translate(model, text, source=(), target=()):
    """What a trained translator writes greedily.

    Args:
        model: as `trained` gives it.
        text: English, str.
        source, target: positions of the tokens that the encoder and the decoder read: (), as they come; None, nowhere;
            or a list that is long enough.

    Returns:
        str.
    """
    tokenizer = model.tokenizer
    bos, eos = tokenizer["<bos>"], tokenizer["<eos>"]
    ids = torch.tensor([[*tokenizer.encode_batch([clean(text)])[0], eos]])
    valid_lens = torch.tensor([ids.shape[1]])
    with _moved(model.encoder, source), _moved(model.decoder, target):
        tokens = model.translate(ids, valid_lens, bos, eos, 2 * ids.shape[1] + 10).tokens[0].tolist()
    return tokenizer.decode(tokens[: tokens.index(eos)] if eos in tokens else tokens)


def places(model, text, kind, seed=1, by=10):
    """Positions of a kind for the tokens of a text, as the page has them at first. Returns: dict for `translate`."""
    S = len(model.tokenizer.encode_batch([clean(text)])[0]) + 1
    return {
        "source": _places(kind, S, S, 2 * seed, by),
        "target": _places(kind, S, 2 * S + 10, 2 * seed + 1, by),
    }


def _places(kind, length, most, seed, by):
    if kind in ("order", "none"):
        return () if kind == "order" else None
    made = [i + by if kind == "shifted" else i for i in range(most)]
    if kind == "shuffled":
        numbers = random_numbers(seed)
        for i in range(length - 1, 0, -1):
            j = int(next(numbers) * (i + 1))
            made[i], made[j] = made[j], made[i]
    return made


def random_numbers(seed):
    """Numbers from 0 to 1 by a seed (Mulberry32): those of the page."""
    while True:
        seed = (seed + 0x6D2B79F5) & 0xFFFFFFFF
        t = ((seed ^ seed >> 15) * (1 | seed)) & 0xFFFFFFFF
        t = ((t + (((t ^ t >> 7) * (61 | t)) & 0xFFFFFFFF)) & 0xFFFFFFFF) ^ t
        yield ((t ^ t >> 14) & 0xFFFFFFFF) / 2**32


class _Placed(torch.nn.Module):
    """Adds sines of other positions than those at which the tokens come."""

    def __init__(self, positions):
        super().__init__()
        self.positions = positions

    def forward(self, X, offset=0):
        if self.positions is None:
            return X
        rows = torch.tensor(self.positions[offset : offset + X.shape[1]])
        return X + sinusoidal(int(rows.max()) + 1, X.shape[-1])[rows]


@contextmanager
def _moved(stack, positions):
    own = stack.pos_encoding
    if positions != ():
        stack.pos_encoding = _Placed(positions)
    try:
        yield
    finally:
        stack.pos_encoding = own
