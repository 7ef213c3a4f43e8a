"""Exported weights for tests: two random encoders of two blocks, which believe something, and their tokenizer."""

import string
from functools import cache

import torch

from d2lmini.models.bert import BERTForPretraining
from d2lmini.models.bert_config import MODERN, BERTConfig
from d2lmini.models.weights import files
from d2lmini.models.weights.rounding import rounded
from d2lmini.models.weights.tokenizers import as_json, from_json

WORDS = "the old ship sail at dawn and crew sing a slow song while harbour fade behind them all king queen lost army"
LETTERS = string.ascii_lowercase + string.digits + string.punctuation
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{a}" for a in LETTERS[:36]), *WORDS.split()[:9],
          *WORDS.split()[10:]]  # fmt: skip
RUN = {"experiment": "bert_pretrain", "preset": "test", "commit": "0", "command": "none", "record": "0", "headline": "h"}


@cache
def _pieces():
    said = {"kind": "wordpiece", "tokens": TOKENS, "max_chars": 100}
    return as_json(from_json(said))


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
            "name": name, "model": "BERTForPretraining", "config": config, "tokenizer": _pieces(), "extra": {},
            "run": RUN, "rounding": {"kind": "int8", "metric": "loss", "before": 0.0, "after": 0.0},
        }  # fmt: skip
        files.write(files.path_of(name, folder), rounded(tensors, "int8"), metadata)
