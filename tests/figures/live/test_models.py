"""The book's own models give PyTorch's logits and attention weights in a page, on the same rounded weights.

Every kind of model, with weights by a seed: tests/javascript/cases/models.py.
"""

import pytest
import torch
from torch.testing import assert_close

from d2lmini.decoding import beam_search
from d2lmini.hooks import capture_attention
from d2lmini.models.weights import files

# What a model says in the page, {logits, weights}; nothing that it made is left behind.
ASK = """
await live.prepare();
const { model } = kept[given.name], before = live.memoryUsed(), { seen, weights } = live.watch();
const all = ({ shape, data }) => ({ shape, data: data.slice() });
const logits = live.tidy(() => { %s });
return { logits, weights, left: live.memoryUsed() - before };
"""
WHOLE = ASK % "return all(model.forward(given.tokens, { ...given.options, seen }));"
TRANSLATE = (
    ASK
    % """
const state = model.start(given.source, given.tokens.length, { seen });
const found = all(model.decoder.forward(given.tokens, state, { seen }));
state.free();
return found;
"""
)


def tensor(told):
    return torch.tensor(told["data"], dtype=torch.float32).view(told["shape"])


def some_tokens(size, number, seed=1):
    return torch.randint(size, (number,), generator=torch.Generator().manual_seed(seed))


def python(model, *inputs):
    """Logits of a model, and the attention weights of each module, without the batch."""
    with torch.no_grad(), capture_attention(model) as record:
        logits = model(*inputs)
    return logits, {name: [one[0] for one in calls] for name, calls in record.items() if calls}


def compare(told, logits, weights):
    assert told["left"] == 0
    assert_close(tensor(told["logits"]), logits, rtol=1e-4, atol=1e-4)
    assert len(told["weights"]) == len(weights) > 0
    for one, other in zip(told["weights"], weights, strict=True):
        assert_close(tensor(one), other, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", files.names())
def test_an_exported_model(name, live, in_both):
    model = in_both(name)
    kind = type(model).__name__
    if kind == "Transformer":
        V = model.config.vocab_size
        source, target = some_tokens(V, 20), some_tokens(V, 23, seed=2)
        logits, weights = python(model, source[None], target[None], torch.tensor([20]))
        given = {"name": name, "source": source.tolist(), "tokens": target.tolist()}
        compare(live(TRANSLATE, given), logits[0], [calls[0] for calls in weights.values()])
    elif kind in ("GPT", "BERTForPretraining"):
        config = model.config
        for length in (1, config.max_len):  # the longest context
            tokens, causal = some_tokens(config.vocab_size, length), bool(model.trained.extra.get("causal"))
            if kind == "GPT":
                logits, weights = python(model, tokens[None])
            else:
                with torch.no_grad(), capture_attention(model) as record:
                    logits = model.mlm(model.bert(tokens[None], causal=causal))
                weights = {key: [calls[0][0]] for key, calls in record.items()}
            options = {} if kind == "GPT" else {"causal": causal}
            given = {"name": name, "tokens": tokens.tolist(), "options": options}
            compare(live(WHOLE, given), logits[0], [calls[0] for calls in weights.values()])
    elif kind == "ViT":
        picture = torch.rand(1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
        logits, weights = python(model, picture)
        compare(
            live(WHOLE, {"name": name, "tokens": picture.flatten().tolist()}),
            logits,
            [calls[0] for calls in weights.values()],
        )
    else:
        pixels = some_tokens(model.num_levels, 14 * 14).view(1, 14, 14)
        logits, weights = python(model, pixels)
        compare(
            live(WHOLE, {"name": name, "tokens": pixels.flatten().tolist()}),
            logits[0].flatten(0, 1),
            [calls[0] for calls in weights.values()],
        )


BEAM = """
await live.prepare();
const { model } = kept[given.name], before = live.memoryUsed(), { source, ...options } = given;
const root = model.start(source, options.max_len + 1);
const step = (token, state) => live.tidy(() => Float32Array.from(model.decoder.forward([token], state).data));
const search = live.beamSearch(
  { step, copy: (state) => state.copy(), free: (state) => state.free({ memory: false }) }, root, options);
const steps = [];
for (;;) {
  const { value, done } = search.next();
  if (done) {
    for (const { cross_attention } of root.caches) cross_attention.free();
    return { found: value, steps: steps.length, left: live.memoryUsed() - before };
  }
  steps.push(value);
}
"""


def _searched(model, source, beam_size, length_penalty, max_len, bos, eos):
    state = model.decoder.init_state(model.encoder(source[None]), None)

    def step(tokens, state):
        logits, state = model.decoder(tokens[:, None], state)
        return logits[:, 0], state

    return beam_search(step, state, bos, eos, max_len, beam_size, length_penalty, num_return=beam_size)


@pytest.mark.parametrize(("beam_size", "length_penalty"), [(1, 0.0), (2, 0.6), (4, 0.6), (3, 0.0), (5, 1.0)])
@pytest.mark.skipif("translator_grammar" not in files.names(), reason="no weights are exported")
def test_beam_search(beam_size, length_penalty, live, in_both):
    model = in_both("translator_grammar")
    bos, eos = model.tokenizer["<bos>"], model.tokenizer["<eos>"]
    for seed in range(3):
        source = some_tokens(model.config.vocab_size, 5 + seed, seed=seed)
        with torch.no_grad():
            want = _searched(model, source, beam_size, length_penalty, 12, bos, eos)
        given = {"name": "translator_grammar", "source": source.tolist(), "bos": bos, "eos": eos, "max_len": 12}
        told = live(BEAM, given | {"beam_size": beam_size, "length_penalty": length_penalty})
        assert told["left"] == 0 and 1 <= told["steps"] <= 12
        for i, found in enumerate(told["found"][:beam_size]):
            tokens = want.tokens[0, i, : len(found["tokens"])].tolist()
            assert found["tokens"] == tokens and found["score"] == pytest.approx(want.scores[0, i].item(), abs=1e-3)
