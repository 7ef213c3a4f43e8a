"""Text without capitals to pretrain on: cleaned, cut into pieces as BERT cuts, in full windows."""

import copy
import random
from collections import Counter

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import DataLoader

from d2lmini.data.pretraining import TextWindows, pretraining_documents

SPECIAL_TOKENS = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
_LOST = "□"  # no vocabulary has it, so that it becomes [UNK]: a word that WikiText-2 has left out


def cleaned(paragraph):
    """A paragraph of WikiText-2 with its hyphens, commas and points as they were printed (``@-@`` is ``-``)."""
    for mark in "-,.":
        paragraph = paragraph.replace(f" @{mark}@ ", mark)
    return paragraph.replace("<unk>", _LOST)


def read(name, val_share):
    """Documents to train on and to validate with, as `pretraining_documents` gives them, cleaned."""
    parts = pretraining_documents(name, val_share)
    return [[[cleaned(paragraph) for paragraph in document] for document in part] for part in parts]


def wordpiece(documents, vocab_size, least=20):
    """A vocabulary of pieces as BERT's, uncased; the same texts give the same one.

    Where two pairs are as frequent the library's trainer takes the one of the smaller ids, and it numbers characters
    as they come out of a hash table. So here all characters have their numbers beforehand.

    Args:
        documents: lists of paragraphs.
        vocab_size: V, tokens in all.
        least: a character that is rarer is unknown.

    Returns:
        ``tokenizers.Tokenizer`` with BERT's special tokens, for a `TextEncoder`.

    Raises:
        ValueError: ``vocab_size`` has no room for the characters.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    texts = [
        normalizer.normalize_str(paragraph.replace(_LOST, " ")) for document in documents for paragraph in document
    ]
    counts = Counter(character for text in texts for character in text if not character.isspace())
    alphabet = sorted(character for character, count in counts.items() if count >= least)
    given = [*SPECIAL_TOKENS, *alphabet, *(f"##{character}" for character in alphabet)]
    if vocab_size < len(given):
        raise ValueError(f"vocab_size is {vocab_size}, expected at least {len(given)}: characters must have room")
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=given, limit_alphabet=len(alphabet), show_progress=False
    )
    learner.train_from_iterator(texts, trainer, len(texts))
    tokenizer = Tokenizer(models.WordPiece(learner.get_vocab(), unk_token="[UNK]"))  # where "##s" is no special token
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


class Windows(TextWindows):
    """`TextWindows` of which an epoch is ``steps`` batches: they go through the text once, then again.

    The order depends on ``seed`` alone, so that all objectives see the same text in the same order. Validation is by
    ``val_windows`` windows, spread over the text. The other arguments are those of `TextWindows`.
    """

    def __init__(self, tokenizer, train, val, window, batch_size, val_windows, seed=0):
        super().__init__(tokenizer, train, val, window, batch_size, seed=seed)
        windows = self.windows["val"]
        if len(self.windows["train"]) < batch_size:
            raise ValueError(f"the text has {len(self.windows['train'])} windows, expected a batch of {batch_size}")
        self.windows["val"] = windows[:: max(1, len(windows) // val_windows)][:val_windows]
        self.steps = 1
        unk_id = self.encoder.encode([_LOST])[0][0][0]
        self.special_ids = sorted({*self.encoder.special_ids, unk_id})

    def for_objective(self, objective, steps):
        """The same windows for another objective and length of an epoch."""
        other = copy.copy(self)
        other.objective, other.steps = objective, steps
        return other

    def get_dataloader(self, train):
        loader = super().get_dataloader(train)
        if not train:
            return loader
        batches = _Stream(len(loader.dataset), self.batch_size, self.steps, self.seed)
        return DataLoader(loader.dataset, batch_sampler=batches, collate_fn=loader.collate_fn)

    def ordinary(self, tokens):
        """Which tokens are to be guessed, none of the special ones: booleans (...)."""
        return ~torch.isin(tokens, torch.tensor(self.special_ids))


class _Stream:
    """Full batches of shuffled passes through N examples, ``steps`` of them an epoch."""

    def __init__(self, number, batch_size, steps, seed):
        self.number, self.batch_size, self.steps, self.seed, self.epoch = number, batch_size, steps, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.steps

    def __iter__(self):
        each, order, shuffled = self.number // self.batch_size, None, None
        for batch in range(self.epoch * self.steps, (self.epoch + 1) * self.steps):
            if order != batch // each:
                order, shuffled = batch // each, list(range(self.number))
                random.Random(f"{self.seed}/{order}").shuffle(shuffled)
            first = batch % each * self.batch_size
            yield shuffled[first : first + self.batch_size]
