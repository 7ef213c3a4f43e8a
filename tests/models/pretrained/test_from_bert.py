"""A BERT with weights of transformers', random ones: the same values and gradients, padded on either side."""

import json

import pytest
import torch
from random_weights import at_random

from d2lmini.models.bert import BERT, BERTForPretraining
from d2lmini.models.bert_config import BERTConfig
from d2lmini.models.heads import TaggingHead, TextHead
from d2lmini.models.pretrained import from_transformers, load_transformers_bert
from d2lmini.models.pretrained.checkpoints import renamed
from d2lmini.models.pretrained.from_bert import RENAMES
from d2lmini.models.span_head import SpanHead

# no 0, whose embedding theirs keeps from learning
TOKENS = torch.randint(1, 37, (3, 9), generator=torch.Generator().manual_seed(3))
SEGMENTS = torch.randint(3, (3, 9), generator=torch.Generator().manual_seed(5))
LENS = torch.tensor([9, 6, 2])
RIGHT = torch.arange(9) < LENS[:, None]
LEFT = RIGHT.flip(1)
SIZES = {"vocab_size": 37, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 40, "max_position_embeddings": 16, "type_vocab_size": 3, "layer_norm_eps": 1e-3}


def tiny(name, **options):
    """A model of transformers by its class."""
    import transformers

    return at_random(getattr(transformers, name)(transformers.BertConfig(**SIZES, **options)))


def from_folder(theirs, folder):
    theirs.save_pretrained(folder)
    return from_transformers(folder).double()


def inputs(side):
    """Ours and theirs. Positions of ours count from the first real token, theirs have to be told."""
    if side == "none":
        return (TOKENS, SEGMENTS), {}, {"input_ids": TOKENS, "token_type_ids": SEGMENTS}
    mask = RIGHT if side == "right" else LEFT
    theirs = {"input_ids": TOKENS, "token_type_ids": SEGMENTS, "attention_mask": mask.long()}
    if side == "right":
        return (TOKENS, SEGMENTS, LENS), {}, theirs
    places = (mask.cumsum(1) - 1).clamp(min=0)
    return (TOKENS, SEGMENTS), {"mask": mask[:, None]}, theirs | {"position_ids": places}


def real_of(side):
    return {"none": torch.ones(3, 9, dtype=torch.bool), "right": RIGHT, "left": LEFT}[side]


def assert_same_gradients(ours, theirs):
    """Of every parameter, by its name."""
    found = dict(ours.named_parameters())
    wanted = {renamed(name, RENAMES): parameter for name, parameter in theirs.named_parameters()}
    assert len(found) == len(wanted)
    for name, parameter in wanted.items():
        name = name if name in found else name.removeprefix("bert.")
        torch.testing.assert_close(found[name].grad, parameter.grad, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_a_bare_bert_and_its_gradients(tmp_path, side):
    theirs = tiny("BertModel")
    model, theirs = from_folder(theirs, tmp_path), theirs.double()
    (args, options, kwargs), mask = inputs(side), real_of(side)
    wanted, found = theirs(**kwargs), model(*args, **options)
    torch.testing.assert_close(found[mask], wanted.last_hidden_state[mask])
    pooled = model.pooled(found, *args[2:], **options)
    if side != "left":  # there theirs takes the first token, though it is padding
        torch.testing.assert_close(pooled, wanted.pooler_output)
        wanted.pooler_output.sum().backward(retain_graph=True)
        pooled.sum().backward(retain_graph=True)
    wanted.last_hidden_state[mask].square().sum().backward()
    found[mask].square().sum().backward()
    assert_same_gradients(model, theirs)


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_masked_tokens_and_their_gradients(tmp_path, side):
    theirs = tiny("BertForMaskedLM")
    model, theirs = from_folder(theirs, tmp_path), theirs.double()
    assert model.nsp is None and model.bert.pooler is None
    args, options, kwargs = inputs(side)
    labels = TOKENS.masked_fill(~(real_of(side) & (TOKENS % 2 == 0)), -100)
    wanted, found = theirs(**kwargs, labels=labels), model(*args, **options)
    torch.testing.assert_close(found[0][real_of(side)], wanted.logits[real_of(side)])
    loss = model.loss(found, labels)
    torch.testing.assert_close(loss, wanted.loss)
    for value in (loss, wanted.loss):
        value.backward()
    assert_same_gradients(model, theirs)


@pytest.mark.parametrize("side", ["none", "right"])
def test_both_heads_and_their_gradients(tmp_path, side):
    theirs = tiny("BertForPreTraining", hidden_act="gelu_new")
    model, theirs = from_folder(theirs, tmp_path), theirs.double()
    args, options, kwargs = inputs(side)
    labels, follows = TOKENS.masked_fill(~(RIGHT & (TOKENS % 2 == 0)), -100), torch.tensor([0, 1, 1])
    wanted = theirs(**kwargs, labels=labels, next_sentence_label=follows)
    found = model(*args, **options)
    torch.testing.assert_close(found[1], wanted.seq_relationship_logits)
    loss = model.loss(found, (labels, follows == 0))
    torch.testing.assert_close(loss, wanted.loss)
    for value in (loss, wanted.loss):
        value.backward()
    assert_same_gradients(model, theirs)


def test_pairs_with_padding_on_the_left(tmp_path):
    """There it is each row alone that theirs has to be compared with."""
    theirs = tiny("BertForPreTraining")
    model, theirs = from_folder(theirs, tmp_path), theirs.double()
    found = model(TOKENS, SEGMENTS, mask=LEFT[:, None])
    for row, n in enumerate(LENS.tolist()):
        alone = theirs(TOKENS[row : row + 1, 9 - n :], token_type_ids=SEGMENTS[row : row + 1, 9 - n :])
        torch.testing.assert_close(found[1][row], alone.seq_relationship_logits[0])


@torch.no_grad()
@pytest.mark.parametrize("task", ["text", "tagging", "span"])
def test_heads_are_those_of_transformers(tmp_path, task):
    names = {"text": "SequenceClassification", "tagging": "TokenClassification", "span": "QuestionAnswering"}
    theirs = tiny(f"BertFor{names[task]}", num_labels=2 if task == "span" else 5)
    bert = BERT(BERTConfig(37, 16, 24, 4, 3, 40, 3, use_pooler=task == "text"))
    load_transformers_bert(bert, theirs.bert.state_dict(), layer_norm_eps=1e-3)
    dense = theirs.qa_outputs if task == "span" else theirs.classifier
    head = {"text": lambda: TextHead(bert, 5, "pooler"), "tagging": lambda: TaggingHead(bert, 5)}.get(task)
    head = (head() if head else SpanHead(bert)).eval()
    head.dense = dense
    args, options, kwargs = inputs("right")
    Y = {
        "text": torch.tensor([1, 4, 0]),
        "tagging": (TOKENS % 5).masked_fill(~RIGHT, -100),
        "span": torch.tensor([[2, 5], [0, 3], [1, 1]]),
    }[task]
    if task == "span":
        kwargs |= {"start_positions": Y[:, 0], "end_positions": Y[:, 1]}
        wanted = theirs(**kwargs)
        everything = torch.ones_like(RIGHT)
        scores = head.dense(bert(*args))  # theirs has padding compete, ours never
        torch.testing.assert_close(scores, torch.stack([wanted.start_logits, wanted.end_logits], -1))
        torch.testing.assert_close(head.loss(scores, Y), wanted.loss)
        found = head(*args, everything)
        torch.testing.assert_close(found[RIGHT], scores[RIGHT])
        return
    wanted = theirs(**kwargs, labels=Y)
    mask = RIGHT if task == "tagging" else slice(None)
    found = head(*args, **options)
    torch.testing.assert_close(found[mask], wanted.logits[mask])
    torch.testing.assert_close(head.loss(found, Y), wanted.loss)


@torch.no_grad()
@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_names_of_older_files(prefix):
    """Gamma and beta, positions as a buffer, a head without the embeddings; a bare encoder with heads beside it."""
    theirs = tiny("BertForPreTraining")
    weights = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    for name in list(weights):
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        old = prefix + old.removeprefix("bert.") if old.startswith("bert.") else old
        weights[old] = weights.pop(name)
    assert sum(name.endswith(("gamma", "beta")) for name in weights) == 2 * (1 + 2 * 3 + 1)
    del weights["cls.predictions.decoder.weight"], weights["cls.predictions.decoder.bias"]
    weights[f"{prefix}embeddings.position_ids"] = torch.arange(16)[None]
    config = BERTConfig(37, 16, 24, 4, 3, 40, 3)
    model = load_transformers_bert(BERTForPretraining(config), weights, layer_norm_eps=1e-3).eval()
    wanted = theirs(TOKENS, token_type_ids=SEGMENTS)
    for found, expected in zip(
        model(TOKENS, SEGMENTS), (wanted.prediction_logits, wanted.seq_relationship_logits), strict=True
    ):
        torch.testing.assert_close(found, expected)
    bare = load_transformers_bert(BERT(config), weights, layer_norm_eps=1e-3).eval()
    torch.testing.assert_close(bare(TOKENS, SEGMENTS), theirs.bert(TOKENS, token_type_ids=SEGMENTS).last_hidden_state)


@torch.no_grad()
def test_which_model_comes_out(tmp_path):
    for name, cls in {
        "BertModel": BERT,
        "BertForMaskedLM": BERTForPretraining,
        "BertForPreTraining": BERTForPretraining,
    }.items():
        tiny(name).save_pretrained(tmp_path / name)
        model = from_transformers(tmp_path / name)
        assert type(model) is cls and not model.training
        assert model.num_parameters == tiny(name).num_parameters()


def test_a_pooler_that_nothing_learns_is_left_out(tmp_path):
    """Published files for masked tokens have one, of the model that they were made from."""
    theirs = tiny("BertForMaskedLM")
    pooler = {f"bert.pooler.dense.{name}": torch.zeros(24, *shape) for name, shape in (("weight", (24,)), ("bias", ()))}
    theirs.save_pretrained(tmp_path)
    ours = from_transformers(tmp_path)
    load_transformers_bert(ours, theirs.state_dict() | pooler, layer_norm_eps=1e-3)
    torch.testing.assert_close(ours(TOKENS, SEGMENTS)[0], theirs(TOKENS, token_type_ids=SEGMENTS).logits)


def test_dropout_as_configured(tmp_path):
    from_folder(tiny("BertModel", hidden_dropout_prob=0.3), tmp_path)
    assert from_transformers(tmp_path).config.dropout == 0.3


def test_checkpoints_that_do_not_fit(tmp_path):
    theirs = tiny("BertForPreTraining")
    config, weights = BERTConfig(37, 16, 24, 4, 3, 40, 3), theirs.state_dict()
    model = BERTForPretraining(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for wrong in (
        weights | {"bert.embeddings.word_embeddings.weight": torch.zeros(36, 24)},
        {name: tensor for name, tensor in weights.items() if "LayerNorm.bias" not in name},
        weights | {"classifier.weight": torch.zeros(2, 24)},
        theirs.bert.state_dict(),
        {},
    ):
        with pytest.raises(ValueError, match="do not fit: expected a BERTForPretraining of the same sizes"):
            load_transformers_bert(model, wrong)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    with pytest.raises(ValueError, match=r"do not fit: expected a BERT of the same sizes.* pooler.0.bias"):
        load_transformers_bert(BERT(BERTConfig(37, 16, 24, 4, 3, 40, 3, use_pooler=False)), weights)
    theirs.save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    for name, value, message in (
        ("hidden_act", "silu", "hidden_act 'silu', expected 'gelu' or"),
        ("position_embedding_type", "relative_key", "position_embedding_type 'relative_key', expected 'absolute'"),
        ("is_decoder", True, "is_decoder True, expected False"),
        ("hidden_size", 32, r"do not fit: .* bert\.embedding\.weight"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(settings | {name: value}))
        with pytest.raises(ValueError, match=message):
            from_transformers(tmp_path)


@torch.no_grad()
def test_albert_shares_blocks_and_widens_embeddings():
    from transformers import AlbertConfig, AlbertModel

    names = {"embedding_size": 12, "inner_group_num": 1, "num_hidden_groups": 1, "hidden_dropout_prob": 0.0}
    theirs = at_random(AlbertModel(AlbertConfig(**SIZES, **names, attention_probs_dropout_prob=0.0)))
    rows = (
        (r"^encoder\.embedding_hidden_mapping_in\.", "widen."),
        (r"^encoder\.albert_layer_groups\.0\.albert_layers\.0\.", "encoder.layer.0."),
        (r"\.full_layer_layer_norm\.", ".output.LayerNorm."),
        (r"\.attention\.LayerNorm\.", ".attention.output.LayerNorm."),
        (r"\.attention\.(query|key|value)\.", r".attention.self.\1."),
        (r"\.attention\.dense\.", ".attention.output.dense."),
        (r"\.ffn\.", ".intermediate.dense."),
        (r"\.ffn_output\.", ".output.dense."),
        (r"^pooler\.", "pooler.dense."),
    )
    config = BERTConfig(37, 16, 24, 4, 3, 40, 3, activation="gelu_tanh", emb_size=12, share_blks=True)
    weights = {renamed(name, rows): tensor for name, tensor in theirs.state_dict().items()}
    model = load_transformers_bert(BERT(config), weights, layer_norm_eps=1e-3).eval()
    assert model.num_parameters == theirs.num_parameters()
    wanted = theirs(TOKENS, token_type_ids=SEGMENTS, attention_mask=RIGHT.long())
    found = model(TOKENS, SEGMENTS, LENS)
    torch.testing.assert_close(found[RIGHT], wanted.last_hidden_state[RIGHT])
    torch.testing.assert_close(model.pooled(found), wanted.pooler_output)
