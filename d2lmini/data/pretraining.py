"""Text to pretrain on: documents in two parts, as ids of their sentences, and windows that are full."""

import torch
from torch.utils.data import DataLoader

from ..training import DataModule
from .batching import LengthBatches
from .labels import check_limits
from .text import documents, split_sentences
from .text_encoder import TextEncoder


def pretraining_documents(name, val_share=0.05, download=True):
    """Documents to train on and to validate with.

    Args:
        name: ``"wikitext2"`` or ``"wikitext2_train_reordered"``: the training and the validation part; else what
            `d2lmini.data.text.documents` knows: the last paragraphs of each document are for validation.
        val_share: share of the characters of each document, at least; WikiText-2 has its own.
        download: whether to fetch what is not on this machine.

    Returns:
        Two lists of documents, each a list of paragraphs.

    Raises:
        ValueError: there is no such text, or the share is not between 0 and 1.
        DataError: a file is missing or damaged.
    """
    if not 0 < val_share < 1:
        raise ValueError(f"val_share is {val_share}, expected above 0 and below 1")
    if name.startswith("wikitext2"):
        train = documents(name, "train" if name == "wikitext2" else None, download)
        return train, documents("wikitext2", "valid", download)
    train, val = [], []
    for document in documents(name, download=download):
        room = (1 - val_share) * sum(map(len, document))
        end = 0
        while end < len(document) and room >= len(document[end]):
            room -= len(document[end])
            end += 1
        train.append(document[:end])
        val.append(document[end:])
    return [document for document in train if document], val


def encode_sentences(encoder, documents):
    """The ids of each sentence of documents.

    Args:
        encoder: a `TextEncoder`.
        documents: list of documents, each a list of paragraphs.

    Returns:
        list of documents, each a list of sentences, each a list of ids: what
        `d2lmini.objectives.next_sentence_pairs` takes. Sentences without a piece are left out.

    """
    sentences = [[s for paragraph in document for s in split_sentences(paragraph)] for document in documents]
    flat = iter(encoder.encode([sentence for document in sentences for sentence in document]))
    return [[ids for _, (ids, _) in zip(document, flat, strict=False) if ids] for document in sentences]


def join_sentences(documents, max_tokens):
    """Neighbouring sentences in one, as many as have room; for pairs of more than a sentence a side.

    Args:
        documents: list of documents, each a list of sentences, each a list of ids.
        max_tokens: most ids of what is joined. A sentence that is longer by itself stays as it is.

    Returns:
        Documents of the same form.

    Raises:
        ValueError: ``max_tokens`` is below 1.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}, expected at least 1")
    joined = []
    for document in documents:
        pieces = []
        for sentence in document:
            if pieces and len(pieces[-1]) + len(sentence) <= max_tokens:
                pieces[-1] = [*pieces[-1], *sentence]
            else:
                pieces.append(sentence)
        joined.append(pieces)
    return joined


def pack_windows(documents, window, encoder):
    """Documents, one after the other, cut into windows without any padding.

    Each window is the class token, ``window - 2`` tokens of text, and a separator; where a document ends inside of a
    window, a separator stands between it and the next. What is left at the end is less than a window, and left out.

    Args:
        documents: list of documents, each a list of sentences, each a list of ids.
        window: T.
        encoder: a `TextEncoder`.

    Returns:
        int32 (N, T).

    Raises:
        ValueError: ``window`` is below 3, or there is not enough text for one.

    Source: Liu et al. 2019, arXiv:1907.11692, section 4.2 ("full sentences"), but windows may begin inside of one.
    """
    if window < 3:
        raise ValueError(f"window is {window}, expected at least 3: two special tokens and one of text")
    stream = []
    for document in documents:
        stream += [index for sentence in document for index in sentence]
        stream.append(encoder.sep_id)
    body = window - 2
    N = (len(stream) - 1) // body  # the last separator needs no place
    if N < 1:
        raise ValueError(f"the documents have {max(len(stream) - 1, 0)} tokens, expected at least {body} for a window")
    text = torch.tensor(stream[: N * body], dtype=torch.int32).reshape(N, body)  # (N, T - 2)
    ends = text.new_tensor([[encoder.cls_id, encoder.sep_id]]).expand(N, 2)
    return torch.cat([ends[:, :1], text, ends[:, 1:]], 1)


class TextWindows(DataModule):
    """Full windows of text, and what an objective makes of each batch of them.

    Training windows come in another order each epoch. What the objective draws comes from a generator that the
    trainer's seed and the epoch decide, in validation from ``seed`` alone: there each epoch hides the same tokens.

    Args:
        tokenizer: see `TextEncoder`.
        train, val: lists of documents, as `pretraining_documents` gives them.
        window: T.
        batch_size: B.
        objective: a function of tokens, int64 (B, T), and a ``torch.Generator`` that returns a batch, such as one with
            `d2lmini.objectives.mask_tokens` inside; None: a batch is ``(tokens,)``.
        seed: of the order of the batches.

    Raises:
        ValueError: a size is too small, or there is not enough text for a window.

    Attributes:
        encoder: the `TextEncoder`.
        windows: dict from ``"train"`` and ``"val"`` to int32 (N, T).
    """

    def __init__(self, tokenizer, train, val, window=128, batch_size=32, objective=None, seed=0):
        super().__init__()
        self.save_hyperparameters(ignore=["tokenizer", "train", "val", "objective"])
        check_limits(batch_size, window, 3, "window", "")
        self.objective, self.encoder = objective, TextEncoder(tokenizer)
        parts = {"train": train, "val": val}
        self.windows = {
            name: pack_windows(encode_sentences(self.encoder, part), window, self.encoder)
            for name, part in parts.items()
        }

    def get_dataloader(self, train):
        """Batches of the training windows, shuffled, or of the validation windows."""
        windows = self.windows["train" if train else "val"]
        batches = LengthBatches([1] * len(windows), self.batch_size, train, self.seed)
        return DataLoader(
            _Windows(windows), batch_sampler=batches, collate_fn=_Collate(self.objective, train, self.seed)
        )


class _Windows(torch.utils.data.Dataset):
    """Windows (N, T) of which a loader takes a batch by one index, with the number of its first window."""

    def __init__(self, windows):
        self.windows = windows

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        return self.windows[index].long()

    def __getitems__(self, indices):
        return indices[0], self.windows[indices].long()


class _Collate:
    def __init__(self, objective, train, seed):
        self.objective, self.train, self.seed = objective, train, seed

    def __call__(self, batch):
        first, tokens = batch
        if self.objective is None:
            return (tokens,)
        # training: from the global random numbers, which the trainer seeds for each epoch
        seed = int(torch.randint(2**62, ())) if self.train else hash((self.seed, first)) % 2**62
        return self.objective(tokens, torch.Generator().manual_seed(seed))
