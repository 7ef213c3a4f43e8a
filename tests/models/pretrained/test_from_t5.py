"""T5 with weights of Hugging Face's, random ones: the same loss, scores, gradients and texts."""

import copy
import json

import pytest
import torch
from random_weights import at_random
from torch import nn

from d2lmini.models.pretrained import from_transformers
from d2lmini.models.pretrained.checkpoints import renamed
from d2lmini.models.pretrained.from_t5 import RENAMES, load_transformers_t5
from d2lmini.models.t5 import T5
from d2lmini.models.t5_config import T5_CONFIGS, T5Config

V = 37
SIZES = {"vocab_size": V, "d_model": 24, "d_kv": 5, "d_ff": 40, "num_layers": 3, "num_heads": 4}
BUCKETS = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}
FORMS = {"1.0": {}, "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}}
LENS = torch.tensor([17, 1, 9])


def made(form, **options):
    from transformers import T5Config as TheirConfig
    from transformers import T5ForConditionalGeneration

    config = TheirConfig(
        **SIZES, **BUCKETS, **FORMS[form], layer_norm_epsilon=1e-3, decoder_start_token_id=0, **options
    )
    theirs = T5ForConditionalGeneration(config)
    if form == "1.1":  # transformers 5 ties what it makes, though not what it reads
        theirs.lm_head.weight = nn.Parameter(torch.empty(V, 24))
    return at_random(theirs)


@pytest.fixture(params=FORMS)
def theirs(request):
    return made(request.param)


def batch():
    """Inputs longer than ``max_distance``, padded on the right; their mask; targets, padded too."""
    torch.manual_seed(2)
    X, Y = torch.randint(2, V, (3, 17)), torch.randint(2, V, (3, 15))
    X[torch.arange(17) >= LENS[:, None]] = 0
    Y[1, 4:] = 0
    return X, (X != 0).long(), Y


def test_loss_logits_and_gradients(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    model, theirs = from_transformers(tmp_path).double(), theirs.double()
    X, mask, Y = batch()
    labels = Y.masked_fill(Y == 0, -100)
    wanted = theirs(input_ids=X, attention_mask=mask, labels=labels)
    close = {"rtol": 1e-5, "atol": 1e-6}  # their norms go through float32
    for valid_lens in (LENS, None):
        logits = model(X, model.shift_right(Y), valid_lens)
        torch.testing.assert_close(logits, wanted.logits, **close)
    loss = model.loss(logits, Y)
    torch.testing.assert_close(loss, wanted.loss, **close)
    loss.backward()
    wanted.loss.backward()
    ours, compared = dict(model.named_parameters()), set()
    for name, parameter in theirs.named_parameters():
        name = renamed(name, RENAMES).replace("shared.", "encoder.embedding.")
        torch.testing.assert_close(ours[name].grad, parameter.grad, **close, msg=lambda text, name=name: name + text)
        compared.add(name)
    assert compared == ours.keys() and model.num_parameters == theirs.num_parameters()


@torch.no_grad()
def test_cached_greedy_generation(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    model, (X, mask, _) = from_transformers(tmp_path), batch()
    theirs.generation_config.eos_token_id = None
    endless = theirs.generate(X, attention_mask=mask, do_sample=False, max_new_tokens=20)[:, 1:]
    eos = int(endless[0, 6])  # so that one at least ends early
    wanted = theirs.generate(X, attention_mask=mask, do_sample=False, max_new_tokens=20, eos_token_id=eos)[:, 1:]
    model.config = T5Config(**{**vars(model.config), "eos": eos})
    found = model.generate([x[:n].tolist() for x, n in zip(X, LENS, strict=True)], 20)
    assert found.valid_lens.min() <= 6 and found.tokens.shape == wanted.shape
    for row, other, n in zip(found.tokens, wanted, found.valid_lens, strict=True):
        assert torch.equal(row[: n + 1], other[: n + 1])
    # without an end, also from a batch of tokens as it is
    state, tokens, rows = model.start(X), torch.zeros(3, dtype=torch.long), []
    for _ in range(20):
        logits, state = model.step(tokens, state)
        rows.append(tokens := logits.argmax(-1))
    assert torch.equal(torch.stack(rows, 1), endless)
    assert len(endless.unique()) >= 4, "a text of one word compares little"


@torch.no_grad()
def test_padding_on_the_left(theirs):
    model = loaded(theirs)
    X, _, Y = batch()
    left = torch.stack([row.roll(17 - n) for row, n in zip(X, LENS.tolist(), strict=True)])
    wanted = theirs(input_ids=left, attention_mask=(left != 0).long(), labels=Y).logits
    torch.testing.assert_close(model(left, model.shift_right(Y)), wanted, rtol=1e-4, atol=1e-4)


def loaded(theirs, **options):
    """Ours with the weights of a model in memory."""
    sizes = {"num_hiddens": 24, "head_size": 5, "num_heads": 4, "num_blks": 3, "ffn_num_hiddens": 40, "vocab_size": V}
    new = theirs.config.feed_forward_proj == "gated-gelu"
    form = {"ffn": "geglu" if new else "relu", "tie_weights": not new, "num_buckets": 8, "max_distance": 12}
    return load_transformers_t5(
        T5(T5Config(**{**sizes, **form, **options})), theirs.state_dict(), layer_norm_eps=1e-3
    ).eval()


@pytest.mark.slow
def test_published_sizes_have_as_many_parameters_as_theirs():
    from transformers import T5Config as TheirConfig
    from transformers import T5ForConditionalGeneration

    for name, config in T5_CONFIGS.items():
        with torch.device("meta"):
            sizes = {"d_model": config.num_hiddens, "d_kv": config.head_size, "d_ff": config.ffn_num_hiddens}
            sizes |= {"num_layers": config.num_blks, "num_heads": config.num_heads, "vocab_size": config.vocab_size}
            form = FORMS["1.0" if config.tie_weights else "1.1"]
            buckets = {"relative_attention_num_buckets": config.num_buckets}
            theirs = T5ForConditionalGeneration(TheirConfig(**sizes, **form, **buckets)).num_parameters()
            # transformers 5 ties what it makes
            theirs += 0 if config.tie_weights else config.vocab_size * config.num_hiddens
            assert T5(config).num_parameters == theirs, name


def test_an_older_file(tmp_path):
    """Those of the hub have the embeddings under one name or three, and a bias that nothing uses."""
    theirs = made("1.0")
    weights = {name: t for name, t in theirs.state_dict().items() if "embed_tokens" not in name and "lm_" not in name}
    weights["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.ones(8, 4)
    model, (X, mask, Y) = loaded(theirs), batch()
    again = load_transformers_t5(copy.deepcopy(model), weights, layer_norm_eps=1e-3)
    torch.testing.assert_close(again(X, Y), model(X, Y))
    # as they were written before transformers 5: no word about scaling, the last layer apart
    from safetensors.torch import save_file

    new = made("1.1")
    new.save_pretrained(tmp_path)
    save_file({name: t.clone() for name, t in new.state_dict().items()}, tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text())
    for name in ("scale_decoder_outputs", "relative_attention_max_distance"):
        del config[name]
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    model = from_transformers(tmp_path)
    assert (
        model.encoder.position.max_distance == 128 and model.decoder.dense.weight is not model.encoder.embedding.weight
    )
    for stack in (new.encoder, new.decoder):
        stack.block[0].layer[0].SelfAttention.relative_attention_max_distance = 128
    wanted = new(input_ids=X, attention_mask=mask, decoder_input_ids=Y).logits
    torch.testing.assert_close(model(X, Y), wanted, rtol=1e-4, atol=1e-4)


def test_what_they_tie_and_do_not_scale(tmp_path):
    """What transformers 5 makes anew of version 1.1: the last layer is the embeddings, but nothing is divided."""
    theirs = made("1.1")
    theirs.lm_head.weight = theirs.shared.weight
    theirs.save_pretrained(tmp_path)
    model, (X, mask, Y) = from_transformers(tmp_path), batch()
    wanted = theirs(input_ids=X, attention_mask=mask, decoder_input_ids=Y).logits
    torch.testing.assert_close(model(X, Y), wanted, rtol=1e-4, atol=1e-4)


def test_weights_that_do_not_fit():
    theirs = made("1.0")
    model = loaded(theirs)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weights = theirs.state_dict()
    for wrong in (
        {k: v for k, v in weights.items() if "wo" not in k},
        {**weights, "more": torch.ones(1)},
        {**weights, "encoder.final_layer_norm.weight": torch.ones(23)},
    ):
        with pytest.raises(ValueError, match="do not fit: expected a T5 of the same sizes"):
            load_transformers_t5(model, wrong)
    with pytest.raises(ValueError, match="expected a T5 with tie_weights=False"):
        load_transformers_t5(model, {**weights, "lm_head.weight": torch.zeros(V, 24)})
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    for options in ({"ffn": "geglu"}, {"head_size": 6}, {"num_blks": 2}, {"num_buckets": 16, "max_distance": 40}):
        with pytest.raises(
            ValueError, match=r"Missing, superfluous or of another shape: .*(ffn|attention|blks|position)"
        ):
            loaded(theirs, **options)


def test_bad_checkpoints(tmp_path, monkeypatch):
    made("1.0").save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    for changed, message in (
        (
            {"model_type": "bert"},
            r"config.json has no 'max_position_embeddings': is it that of another model than 'bert'",
        ),
        ({"feed_forward_proj": "gated-silu"}, "feed_forward_proj 'gated-silu', expected 'relu' or 'gated-gelu'"),
        ({"num_decoder_layers": 2}, "3 layers in the encoder and 2 in the decoder, expected as many in both"),
    ):
        file.write_text(json.dumps(config | changed))
        with pytest.raises(ValueError, match=message):
            from_transformers(tmp_path)
    file.write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"model.safetensors is damaged"):
        from_transformers(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match="there is no folder 'nobody/nothing'"):
        from_transformers("nobody/nothing")
