"""The experiment on drafts: a model's first blocks, and that every draft gives the large model's text."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from d2lmini.experiments.real_model import bases, speculative
from d2lmini.experiments.real_model.speculative import KINDS, NONE, PRESETS, Draft, make, shortened, summed, written

CONFIG = replace(PRESETS["smoke"], texts=2, max_new_tokens=20)


def test_the_first_blocks_of_a_model():
    model, _ = bases.load("toy")
    tokens, short = torch.arange(8)[None], shortened(model, 2)
    X = model.embedding(tokens)
    for blk in model.blks[:2]:
        X = blk(X, causal=True, rotary=model.rotary)
    torch.testing.assert_close(short(tokens), model.dense(model.norm(X)))
    assert len(model.blks) == 4 and len(short.empty_state(1).caches) == 2
    assert short.dense is model.dense and short.blks[1] is model.blks[1]
    torch.testing.assert_close(shortened(model, 4)(tokens), model(tokens))
    for number in (0, 5):
        with pytest.raises(ValueError, match=f"num_blks is {number}, expected 1 to 4"):
            shortened(model, number)


def test_unknown_draft():
    with pytest.raises(ValueError, match="of kind 'luck', expected one of none, look-up, blocks, bits"):
        make(Draft("a", "luck"), bases.load("toy")[0])


def test_all_drafts_give_one_text():
    loaded, lengths = partial(bases.load, "toy"), [20, 20]
    alone = written(NONE, "copy", lengths, loaded)
    assert alone["passes"] == [20, 20] and alone["proposed"] == [0, 0]
    model, tokenizer = bases.load("toy")
    for text, tokens in zip(KINDS["copy"], alone["tokens"], strict=False):
        prompt = speculative.prompt_of(tokenizer, text)
        assert tokens == model.generate([prompt], 20, temperature=0).tokens[0].tolist()
    for draft in CONFIG.drafts:
        record = written(draft, "copy", lengths, loaded)
        found = summed(record, alone)
        assert found["same"] == [True, True] and found["tokens"] == 40
        assert found["tokens_per_pass"] == 40 / found["passes"] > 1 and 0 < found["kept"] <= 1
        assert found["token_s"] == pytest.approx(sum(record["texts_s"]) / 40)
    other = alone | {"tokens": [alone["tokens"][0], alone["tokens"][0]]}
    assert summed(other, alone)["same"] == [True, False] and summed(alone, alone)["kept"] is None


def test_a_text_ends_with_its_stop():
    model, tokenizer = bases.load("toy")
    prompt = speculative.prompt_of(tokenizer, "a")
    text = model.generate([prompt], 20, temperature=0).tokens[0].tolist()
    stop = text[6]
    assert speculative.length_of(model, prompt, 20, stop) == text.index(stop) + 1
    assert speculative.length_of(model, prompt, 20, None) == 20
    assert speculative.length_of(model, prompt, 3, 0) == 3
    assert speculative.lengths_of("list", CONFIG, partial(bases.load, "toy")) == [20, 20]
