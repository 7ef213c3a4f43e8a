"""Real weights: all-MiniLM-L6-v2, a BERT of six layers that gives sentences of like meaning like vectors."""

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from ...data import registry
from ..heads import mean_pooling
from ..pretrained import from_transformers

NAME = "all_minilm_l6_v2"
MAX_LEN = 256  # tokens of a text, as its own package cuts them


def load_minilm():
    """The model, in evaluation mode, and its tokenizer, which neither cuts nor pads.

    ``registry.checksums(NAME, ["model.safetensors", "tokenizer.json"])`` belongs beside what is measured with it.

    Returns:
        `BERT` and ``tokenizers.Tokenizer``.

    Raises:
        DataError: it is neither here nor to be fetched, or damaged; the message says how to get it.

    Source: Reimers and Gurevych 2019; Wang et al. 2020 (MiniLM).
    """
    files = registry.fetch(NAME)
    tokenizer = Tokenizer.from_file(str(files["tokenizer.json"]))
    tokenizer.no_padding()  # its file has every text filled up, and cut, to 128
    tokenizer.no_truncation()
    return from_transformers(files["model.safetensors"].parent), tokenizer


@torch.no_grad()
def sentence_embeddings(model, tokenizer, texts, batch_size=32, max_len=MAX_LEN):
    """What texts mean: the mean over their tokens, of length 1. The product of two says how alike they are.

    Args:
        model: a `BERT`; in training mode dropout is at work.
        tokenizer: its ``tokenizers.Tokenizer``, as `load_minilm` gives both; not changed.
        texts: list of N str.
        batch_size: how many at once; those of like length go together.
        max_len: tokens of a text, special ones included; what is beyond is cut off.

    Returns:
        (N, h), on the model's device.

    Raises:
        TypeError: ``texts`` is one str.
        ValueError: the tokenizer is of another model, or ``max_len`` is more than its positions or less than 3.

    Source: Reimers and Gurevych 2019, section 3.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one str, expected a list of them")
    if tokenizer.get_vocab_size() != model.config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.get_vocab_size()} tokens but the model {model.config.vocab_size}: is it "
            "that of another model?"
        )
    if not 3 <= max_len <= model.config.max_len:
        raise ValueError(f"max_len is {max_len}, expected 3 to {model.config.max_len}, the model's positions")
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    encoded = [
        ids if len(ids) <= max_len else [*ids[: max_len - 1], ids[-1]] for ids in encoded
    ]  # the last one is [SEP]
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
    weight = model.embedding.weight
    vectors = weight.new_empty(len(encoded), model.config.num_hiddens)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        rows = [torch.tensor(encoded[i]) for i in places]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(weight.device)  # (B, T)
        valid_lens = torch.tensor([len(row) for row in rows], device=weight.device)
        means = mean_pooling(model(tokens, None, valid_lens), valid_lens)  # (B, h)
        vectors[places] = F.normalize(means, dim=1)
    return vectors
