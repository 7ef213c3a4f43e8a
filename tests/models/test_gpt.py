"""GPT: causal, cached, padded; counts of the published models; what it refuses."""

import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from gpt_forms import FORMS, MODERN, TOY
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import d2lmini
from d2lmini.cache import KeyValueCache
from d2lmini.data.text import load_text
from d2lmini.decoding import greedy_search, reorder
from d2lmini.models import gpt_config
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS, GPTConfig
from d2lmini.tokenization.characters import CharacterTokenizer
from d2lmini.training import DataModule, Trainer


@pytest.fixture(params=FORMS)
def model(request):
    torch.manual_seed(0)
    model = GPT(FORMS[request.param]).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model


def test_every_setting_is_in_the_forms():
    """One that is in no form is one that no test of decoding, adapters or rounded weights has tried."""
    for field in fields(GPTConfig):
        assert any(getattr(form, field.name) != field.default for form in FORMS.values()), field.name
    for name, choices in gpt_config._CHOICES.items():
        assert {getattr(form, name) for form in FORMS.values()} == {*choices}, name


def tokens(*shape):
    return torch.randint(65, shape, generator=torch.Generator().manual_seed(4))


@torch.no_grad()
def test_rotary_positions_have_no_end_unless_the_context_is_limited():
    config = replace(TOY, positions="rotary", max_len=5)
    assert GPT(config)(torch.zeros(1, 6).long()).shape == (1, 6, config.vocab_size)
    with pytest.raises(ValueError, match="there are 6 tokens but the context is 5"):
        GPT(replace(config, limit_context=True))(torch.zeros(1, 6).long())
    with pytest.raises(ValueError, match="the prompt has 4 tokens, to which 3 cannot be added"):
        GPT(replace(config, limit_context=True)).generate([[0, 1, 2, 3]], 3)


def test_the_way_from_tokens_to_the_kernel_is_short():
    """Who reads the source along a forward pass opens five files and sixteen functions; to fetch a part is none."""
    model, X, package, seen = GPT(TOY), tokens(2, 64), str(Path(d2lmini.__file__).parent), set()

    def note(frame, event, arg):
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(package)
            and not code.co_name.startswith(("<", "__getattr__"))
        ):
            seen.add((Path(code.co_filename).stem, code.co_firstlineno, code.co_name))

    model(X)
    sys.setprofile(note)
    try:
        model(X)
    finally:
        sys.setprofile(None)
    assert {file for file, *_ in seen} == {"gpt", "transformer", "multi_head", "attention", "kernels"}
    assert len(seen) <= 16, sorted(seen)


@torch.no_grad()
def test_no_token_sees_a_later_one(model):
    X = tokens(3, 12)
    changed = X.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 65

    def scores(X):
        torch.manual_seed(1)  # what is dropped is the same
        return model(X)

    for mode in (True, False):
        model.train(mode)
        one, other = scores(X), scores(changed)
        torch.testing.assert_close(one[:, :7], other[:, :7])
        assert not torch.allclose(one[:, 7], other[:, 7])


@torch.no_grad()
def test_the_order_counts(model):
    X = tokens(2, 6)
    swapped = X[:, [1, 0, 2, 3, 4, 5]]
    assert (X[:, 0] != X[:, 1]).all()
    # without positions the first of two layers sees prefixes as sets, the second one no more
    assert not torch.allclose(model(X)[:, -1], model(swapped)[:, -1], atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("chunks", [[1] * 12, [5, 1, 6], [12]])
def test_the_cache_changes_nothing(model, chunks):
    X, state, found = tokens(3, 12), model.empty_state(3), []
    for part in X.split(chunks, 1):
        if part.shape[1] == 1:
            logits, state = model.step(part[:, 0], state)
            logits = logits[:, None]
        else:
            logits, state = model.extend(part, state)
        found.append(logits)
    torch.testing.assert_close(torch.cat(found, 1), model(X), rtol=1e-4, atol=1e-4)
    assert state.length == 12 and all(isinstance(cache, KeyValueCache) for cache in state.caches)


@torch.no_grad()
def test_padding_on_the_left_changes_nothing(model):
    X, padding = tokens(3, 9), torch.tensor([0, 2, 5])
    found = model(X, padding)
    for row, n, logits in zip(X, padding.tolist(), found, strict=True):
        torch.testing.assert_close(logits[n:], model(row[None, n:])[0], rtol=1e-4, atol=1e-4)
    state = model.extend(X, model.empty_state(3, padding))[1]
    logits, _ = model.step(X[:, 0], state)
    alone = torch.cat([X[2:, 5:], X[2:, :1]], 1)
    torch.testing.assert_close(logits[2], model(alone)[0, -1], rtol=1e-4, atol=1e-4)
    picked = reorder(state, torch.tensor([2, 2]))
    torch.testing.assert_close(model.step(X[[0, 2], 0], picked)[0][1], logits[2], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_it_fits_decoding(model):
    prompts = tokens(2, 5)
    _, state = model.extend(prompts[:, :-1], model.empty_state(2))
    found = greedy_search(model.step, state, prompts[:, -1], 3, 8)
    X = prompts
    for i in range(found.tokens.shape[1]):
        best = model(X)[:, -1].argmax(-1)
        open_ones = found.valid_lens > i
        assert torch.equal(found.tokens[open_ones, i], best[open_ones])
        X = torch.cat([X, found.tokens[:, i : i + 1]], 1)


def test_generate_from_prompts_of_any_length(model):
    prompts = [[3], [7, 8, 9, 10], [5, 6]]
    found = model.generate(prompts, 6, temperature=0)
    for prompt, row in zip(prompts, found.tokens, strict=True):
        alone = model.generate(torch.tensor([prompt]), 6, temperature=0)
        assert torch.equal(alone.tokens[0], row)
        X = torch.tensor([prompt])
        with torch.no_grad():
            for token in row:
                assert model(X)[0, -1].argmax() == token
                X = torch.cat([X, token[None, None]], 1)

    def drawn(seed, **options):
        generator = torch.Generator().manual_seed(seed)
        return model.generate(prompts, 6, generator=generator, temperature=2.0, **options).tokens

    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))
    assert drawn(1, num_samples=2).shape == (3, 2, 6)
    banned = model.generate(prompts, 1, temperature=0, repetition_penalty=1e6).tokens[:, 0].tolist()
    assert all(token not in prompt for token, prompt in zip(banned, prompts, strict=True))


def test_prompts_that_do_not_fit():
    model = GPT(TOY).eval()
    assert model.generate([[1] * 60], 5, temperature=0).tokens.shape == (1, 5)
    with pytest.raises(ValueError, match="the prompt has 60 tokens, to which 6 cannot be added: the context is 64"):
        model.generate([[1] * 60], 6)
    for empty in ([[1], []], [], torch.empty(2, 0, dtype=torch.long)):
        with pytest.raises(ValueError, match="a prompt is empty"):
            model.generate(empty, 3)
    with pytest.raises(ValueError, match="expected 0 to 64"):
        model.generate([[1, 65]], 3)
    with pytest.raises(ValueError, match="temperature"):
        model.generate([[1]], 3, temperature=-1)


@pytest.mark.slow
def test_counts_are_those_of_the_papers():
    wanted = {"gpt1": 117e6, "gpt2": 124e6, "gpt2-medium": 355e6, "gpt2-large": 774e6, "gpt2-xl": 1558e6, "gpt3": 175e9}
    for name, number in wanted.items():
        with torch.device("meta"):
            assert GPT(GPT_CONFIGS[name]).num_parameters == pytest.approx(number, rel=0.01), name


def test_count_by_hand():
    config = replace(TOY, vocab_size=11, max_len=7, num_hiddens=6, num_heads=2, num_blks=3, ffn_num_hiddens=10)
    attention, ffn, norms = 4 * (6 * 6 + 6), 6 * 10 + 10 + 10 * 6 + 6, 2 * 2 * 6
    assert GPT(config).num_parameters == (11 + 7) * 6 + 3 * (attention + ffn + norms) + 2 * 6


def test_how_weights_begin():
    torch.manual_seed(0)
    wide = {"num_hiddens": 256, "num_blks": 2}
    gpt1, gpt2 = (GPT(replace(TOY, **wide, init=init)) for init in ("gpt1", "gpt2"))
    for model, last in ((gpt1, 0.02), (gpt2, 0.01)):  # over sqrt(2 * 2)
        assert model.blks[0].ffn.dense1.weight.std().item() == pytest.approx(0.02, rel=0.02)
        assert model.blks[1].ffn.dense2.weight.std().item() == pytest.approx(last, rel=0.02)
        assert not model.blks[0].ffn.dense1.bias.any()
    modern = GPT(MODERN)
    assert not modern(tokens(1, 4)).any(), "the first guess is even"
    assert modern.dense.weight is not modern.embedding.weight and gpt1.dense.weight is gpt1.embedding.weight


@pytest.mark.train
@pytest.mark.parametrize("name", ["toy", "modern-toy"])
def test_it_learns(name):
    torch.manual_seed(0)
    tokenizer = CharacterTokenizer(text := load_text("book")[:4000])
    model = GPT(replace(GPT_CONFIGS[name], vocab_size=len(tokenizer), max_len=32), lr=3e-3).train()
    ids, optimizer = torch.tensor(tokenizer.encode(text)), model.configure_optimizers()
    first = model.loss(model(ids[None, :32]), ids[None, 1:33]).item()
    for _ in range(60):
        starts = torch.randint(len(ids) - 32, (16, 1)) + torch.arange(33)
        loss = model.loss(model(ids[starts][:, :-1]), ids[starts][:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.75 * first


def test_targets_to_be_left_out():
    model = GPT(TOY)
    logits, Y = torch.randn(2, 3, 65), tokens(2, 3)
    Y[1] = -100
    torch.testing.assert_close(model.loss(logits, Y), nn.functional.cross_entropy(logits[0], Y[0]))
    assert model.batch_weight((tokens(2, 3), Y)) == 3
    Y[0], logits = -100, logits.requires_grad_()
    model.loss(logits, Y).backward()
    assert model.loss(logits, Y) == 0 and not logits.grad.any() and model.batch_weight((tokens(2, 3), Y)) == 0


def test_two_batches_of_a_step_count_by_the_tokens_they_guess():
    X, Y = tokens(8, 9), tokens(8, 9).flip(0)
    for i in range(8):
        Y[i, :i] = -100

    def train(batch_size, accumulate):
        data = DataModule()
        data.get_dataloader = lambda train: DataLoader(TensorDataset(X, Y), batch_size)
        torch.manual_seed(0)
        model = GPT(TOY)
        model.configure_optimizers = lambda: torch.optim.SGD(model.parameters(), lr=1.0)
        trainer = Trainer(max_epochs=1, accumulate=accumulate)
        trainer.fit(model, data)
        return trainer.history, list(model.parameters())

    (small, ours), (large, theirs) = train(4, 2), train(8, 1)
    for name in ("train_loss", "val_loss"):
        assert small[name] == pytest.approx(large[name], rel=1e-5)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_bad_input():
    model = GPT(TOY)
    for X in (tokens(2, 3) + 65, tokens(2, 3) - 65):
        with pytest.raises(ValueError, match="expected 0 to 64: were they encoded with the vocabulary of this model"):
            model(X)
    for X in (tokens(5), tokens(2, 3).float(), tokens(2, 3) > 3):
        with pytest.raises(ValueError, match=r"expected integers \(B, T\)"):
            model(X)
    with pytest.raises(ValueError, match="there are 65 tokens but the context is 64"):
        model(tokens(1, 65))
    _, state = model.extend(tokens(1, 64), model.empty_state(1))
    with pytest.raises(ValueError, match="there are 65 tokens but the context is 64"):
        model.step(tokens(1), state)
    assert GPT(MODERN)(tokens(1, 70)).shape == (1, 70, 65), "turned positions go on"
    assert model(tokens(2, 0)).shape == (2, 0, 65) and model(tokens(0, 3)).shape == (0, 3, 65)
    for padding in (torch.tensor([1]), torch.tensor([1.0, 2.0]), torch.tensor([0, -1]), torch.tensor([True, False])):
        with pytest.raises(ValueError, match=r"padding is .*, expected \(2,\) integers from 0"):
            model(tokens(2, 3), padding)
    for padding in ([1, 0], 1, True):
        for call in (lambda p: model(tokens(2, 3), p), lambda p: model.empty_state(2, p)):
            with pytest.raises(TypeError, match=r"padding is a (list|int|bool), expected a tensor of integers \(2,\)"):
                call(padding)
    with pytest.raises(ValueError, match=r"padding is .*, but there are 3 tokens in a row"):
        model(tokens(2, 3), torch.tensor([4, 0]))
    with pytest.raises(ValueError, match="the state is of 3 blocks, the model has 2"):
        model.extend(tokens(1, 1), GPT(replace(TOY, num_blks=3)).empty_state(1))
    for name in ("gpt5", "GPT2"):
        with pytest.raises(KeyError, match=f"there is no {name!r}, expected one of 'toy', 'gpt1'"):
            GPT_CONFIGS[name]
    for wrong, message in {
        ("num_hiddens", "64"): "num_hiddens is '64', expected an integer",
        ("num_blks", True): "num_blks is True, expected an integer",
        ("dropout", True): "dropout is True, expected a number from 0 to 1",
        ("dropout", "0.1"): "dropout is '0.1'",
        ("norm_eps", "1e-5"): "norm_eps is '1e-5', expected a number",
        ("rotary_base", True): "rotary_base is True, expected a number above 1",
        ("num_heads", None): "num_heads is None, expected an integer",
        ("ffn_num_hiddens", 0): "ffn_num_hiddens is 0, expected an integer, at least 1",
        ("norm", "batch"): "norm is 'batch', expected one of 'layer', 'rms'",
        ("ffn", "tanh"): "ffn is 'tanh'",
        ("positions", "sines"): "positions is 'sines', expected one of 'learned', 'rotary', None",
        ("init", "he"): "init is 'he'",
        ("num_blks", 0): "num_blks is 0, expected an integer, at least 1",
    }.items():
        with pytest.raises(ValueError, match=message):
            GPTConfig(**dict([wrong]))
    with pytest.raises(ValueError, match="num_hiddens is 64, expected a multiple of num_heads, 5"):
        GPT(replace(TOY, num_heads=5))
