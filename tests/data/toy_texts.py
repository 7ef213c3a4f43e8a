"""What tests of text data share: files where the registry expects them, tokenizers of all kinds."""

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from toy_pairs import register

from d2lmini.data.grammar import make_sentences
from d2lmini.tokenization import BPETokenizer, SubwordTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [made.english for made in make_sentences(1_000)["train"]] + ["naïve café, isn't it? 😂 [SEP] 1999s! (x)"]


def put(folder, monkeypatch, name, file, text):
    """Lay a text where the registry looks, and make it expect this one."""
    path = folder / file
    path.write_bytes(text.encode())
    register(monkeypatch, name, path, "", text.encode())


def published():
    """A tokenizer as published models bring one: BERT's parts, and it cuts and pads to eight tokens."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8, pad_id=0, pad_token="[PAD]")
    return tokenizer


TOKENIZERS = {
    "ours": BPETokenizer.train(SENTENCES, 350),
    "published": published(),
    **{kind: SubwordTokenizer.train(kind, SENTENCES, 350, SPECIAL) for kind in ("bpe", "wordpiece", "unigram")},
}
each_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)


def rows(batch):
    """The tokens of each row without padding."""
    return [row[:length].tolist() for row, length in zip(batch[0], batch[2], strict=True)]
