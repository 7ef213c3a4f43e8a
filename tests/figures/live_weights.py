"""Exported weights for tests: two random encoders of two blocks, which believe something, and their tokenizer."""

import string

import torch

from d2lmini.models.bert import BERTForPretraining
from d2lmini.models.bert_config import MODERN, BERTConfig
from d2lmini.models.weights import files
from d2lmini.models.weights.rounding import rounded

WORDS = "the old ship sail at dawn and crew sing a slow song while harbour fade behind them all king queen lost army"
LETTERS = string.ascii_lowercase + string.digits + string.punctuation
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS[:36])]
TOKENS += dict.fromkeys(word for word in WORDS.split() if word not in TOKENS)
RUN = {
    "experiment": "bert_pretrain",
    "preset": "test",
    "commit": "0",
    "command": "none",
    "record": "0",
    "headline": "h",
}


# what the library takes for spaces and punctuation, of ASCII: to ask it for every code point takes long
CLASSES = {
    "dropped": [], "spaces": [[9, 10], [13, 13], [32, 32]], "ideographs": [], "marks": [],
    "punctuation": [[33, 47], [58, 64], [91, 96], [123, 126]],
}  # fmt: skip
PIECES = {"kind": "wordpiece", "tokens": TOKENS, "special": TOKENS[:5], "lower_case": True, "max_chars": 100,
          "classes": CLASSES}  # fmt: skip


def encoders(folder, names=("bert_wikitext", "causal_wikitext")):
    """Writes one file of weights for each name into a folder."""
    config = dict(vocab_size=len(TOKENS), max_len=128, num_hiddens=32, num_heads=2, num_blks=2, dropout=0.0,
                  use_pooler=False, **MODERN)  # fmt: skip
    for seed, name in enumerate(names):
        model = BERTForPretraining(BERTConfig(**config), next_sentence=False)
        generator = torch.Generator().manual_seed(seed)
        tensors = {
            key: torch.randn(p.shape, generator=generator) * (0.3 if p.dim() > 1 else 0.1) + (p.dim() == 1)
            for key, p in model.named_parameters()
        }
        metadata = {
            "name": name, "model": "BERTForPretraining", "config": config, "tokenizer": PIECES, "extra": {},
            "run": RUN, "rounding": {"kind": "int8", "metric": "loss", "before": 0.0, "after": 0.0},
        }  # fmt: skip
        files.write(files.path_of(name, folder), rounded(tensors, "int8"), metadata)
