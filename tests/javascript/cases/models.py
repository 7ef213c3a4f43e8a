"""Logits and attention weights of every model, PyTorch's in float64, by passes over all tokens and by caches."""

from dataclasses import asdict

import torch

from d2lmini.decoding import beam_search
from d2lmini.hooks import attention_rollout, capture_attention, head_masks
from d2lmini.models.weights.trained import MODELS

from ._weights import drawn_into, integers, rounded, uniform

MODULE = "tests/javascript/runtime.js"
WITHIN = 1e-4

GPT = dict(vocab_size=11, max_len=7, num_hiddens=8, num_heads=2, num_blks=2, dropout=0.0)
GPTS = [
    {},
    dict(norm_first=False, init="gpt1", ffn="gelu", tie_weights=False),
    dict(positions="rotary", norm="rms", ffn="squared_relu", use_bias=False, qk_norm=True, tie_weights=False),
    dict(positions=None, ffn="relu", use_bias=False, num_blks=1),
    dict(positions="rotary", num_hiddens=18, num_heads=3, ffn_num_hiddens=7, qk_norm=True, vocab_size=5),
    dict(norm="rms", norm_first=False, positions="rotary", num_heads=1),
    dict(norm="rms", positions="rotary", ffn="swiglu", num_kv_heads=1, use_bias=False, num_blks=1, ffn_num_hiddens=6),
]
BERT = dict(vocab_size=11, max_len=7, num_hiddens=12, num_heads=3, num_blks=2, dropout=0.0, use_pooler=False)
BERTS = [
    {},
    dict(activation="squared_relu", positions="rotary", norm_first=True, norm="rms", use_bias=False, qk_norm=True),
    dict(activation="gelu_tanh", emb_size=5, share_blks=True, num_blks=3),
    dict(num_hiddens=15, num_segments=3, ffn_num_hiddens=10, norm_first=True),
]
SEQ2SEQ = dict(vocab_size=9, num_hiddens=12, ffn_num_hiddens=9, num_heads=3, num_blks=2, dropout=0.0, pad=0)
VIT = dict(img_size=6, patch_size=2, num_hiddens=12, mlp_num_hiddens=10, num_heads=2, num_blks=2, num_classes=4)
VIT |= dict(num_channels=1, emb_dropout=0.0, blk_dropout=0.0, use_bias=True)
IMAGE = dict(img_size=(3, 4), num_levels=6, num_hiddens=8, ffn_num_hiddens=12, num_heads=2, num_blks=2)


def cases():
    with torch.no_grad():
        for seed, changes in enumerate(GPTS):
            yield of_model("GPT", GPT | changes, seed, gpt, row(0, 0))
        for seed, changes in enumerate(BERTS):
            yield of_model("BERTForPretraining", BERT | changes, seed, bert, row(0, 0))
        for norm_first in (True, False):
            config, tiny = SEQ2SEQ | {"norm_first": norm_first}, row(0, 0)
            yield of_model("Transformer", config, 1, translator, tiny, tiny, torch.tensor([2]))
        yield of_model("ViT", VIT, 2, vit)
        yield of_model("ImageGPT", IMAGE, 3, image_gpt, torch.zeros(1, 3, 4).long())
        yield beams()


def row(*tokens):
    return torch.tensor([tokens])


def made(kind, config, seed, *warm_up):
    """A model in float64, its whole configuration, and the shapes of its weights."""
    model = MODELS[kind](**config).eval()
    if warm_up:
        model(*warm_up)
    return model, config if kind == "ViT" else asdict(model.config), drawn_into(model, seed)


def of_model(kind, config, seed, questions, *warm_up):
    """A case of `asked`: ``questions(model)`` gives pairs of a question and what the model says."""
    model, whole, shapes = made(kind, config, seed, *warm_up)
    asked, wanted = zip(*questions(model), strict=True)
    return "asked", [kind, whole, shapes, seed, asked], wanted


def said(logits, weights=(), first=0):
    return {
        "logits": rounded(logits[first:], 6),
        "looks": [[rounded(head, 6) for head in one[:, first:]] for one in weights],
    }


def python(model, *inputs, masks=None, **options):
    """Logits of a model and its attention weights, without the batch."""
    with capture_attention(model) as record, head_masks(model, masks or {}):
        logits = model(*inputs, **options)
    return logits, [calls[0][0] for calls in record.values() if calls]


def gpt(model):
    V = model.config.vocab_size
    tokens = integers(1, V, 7)
    logits, _ = python(model, row(*tokens))
    yield {"tokens": tokens, "by": [1, 3]}, said(logits[0])
    logits, weights = python(model, row(*tokens[:5]), padding=torch.tensor([2]))
    padded = {"tokens": tokens[:5], "options": {"padding": 2}, "by": [1, 3], "first": 2}
    yield padded | {"heads": "all"}, said(logits[0], weights, first=2)
    logits, _ = python(model, row(tokens[0]))
    yield {"tokens": tokens[:1], "by": [1]}, said(logits[0])
    if model.config.num_blks == model.config.num_heads == 2:
        masks = [[0.0, 1.0], [1.0, 0.5]]
        for chosen in (masks, [None, masks[1]]):
            modules = {f"blks.{i}.attention": torch.tensor(mask) for i, mask in enumerate(chosen) if mask}
            logits, _ = python(model, row(*tokens[:4]), masks=modules)
            yield {"tokens": tokens[:4], "options": {"head_masks": chosen}, "by": [1]}, said(logits[0])


def bert(model):
    tokens, segments = integers(1, 11, 7), integers(2, model.config.num_segments, 7)
    for length, valid, causal in ((7, 7, False), (7, 5, False), (6, 6, True), (5, 3, True), (1, 1, False)):
        given = row(*tokens[:length]), row(*segments[:length]), torch.tensor([valid])
        with capture_attention(model) as record:
            logits = model.mlm(model.bert(*given, causal=causal))[0]
        weights = [call[0] for calls in zip(*record.values(), strict=True) for call in calls]
        options = {"valid_len": valid, "causal": causal, "segments": segments[:length]}
        question = {"tokens": tokens[:length], "options": options}
        if valid < length:
            yield question | {"heads": "all"}, said(logits, weights)
        else:
            yield question, said(logits)


def translator(model):
    own, cross = [[1.0, 0.0, 0.5], [0.0, 1.0, 1.0]], [[0.0, 0.0, 1.0], None]
    modules = {f"encoder.blks.{i}.attention": torch.tensor(own[i]) for i in range(2)}
    modules |= {f"decoder.blks.{i}.attention1": torch.tensor(own[i]) for i in range(2)}
    modules |= {"decoder.blks.0.attention2": torch.tensor(cross[0])}
    masked = {"head_masks": own}, {"head_masks": {"own": own, "cross": cross}}
    for (S, T), valid, off in (((1, 1), 1, False), ((4, 5), 4, False), ((6, 3), 4, False), ((4, 3), 3, True)):
        source, tokens = integers(1, 9, S), integers(2, 9, T)
        inputs = row(*source), row(*tokens), torch.tensor([valid])
        logits, weights = python(model, *inputs, masks=modules if off else {})
        options, target = masked if off else ({}, {})
        question = {"source": source, "tokens": tokens, "options": options | {"valid_len": valid}, "target": target}
        shown = {"heads": "all"} if off or S > T else {}
        yield question | {"by": [1, 2]} | shown, said(logits[0], weights if shown else ())


def vit(model):
    pixels = uniform(0, 6, 6).abs() / 1.5
    logits, weights = python(model, pixels[None, None])
    question = {"tokens": rounded(pixels)}
    yield question | {"heads": "all"}, said(logits, weights)
    rollout = attention_rollout([one[None] for one in weights])[0]
    yield question | {"heads": "rollout"}, {"logits": rounded(logits, 6), "rollout": rounded(rollout, 6)}
    X, positions = torch.cat([model.cls_token, model.patch_embedding(pixels[None, None])], 1), model.pos_embedding
    kept, order = [0, 3, 7, 8], [4, 0, 8, 2, 6, 1, 7, 5, 3]
    there = [0, *(patch + 1 for patch in kept)]
    moved = positions[:, [0, *(place + 1 for place in order)]]
    nowhere = torch.cat([positions[:, :1], torch.zeros_like(positions[:, 1:])], 1)
    for options, read in (
        ({"kept": kept}, (X + positions)[:, there]),
        ({"places": order}, X + moved),
        ({"places": [None] * 9}, X + nowhere),
    ):
        for blk in model.blks:
            read = blk(read)
        yield question | {"options": options}, said(model.head(read[:, 0]))


def image_gpt(model):
    pixels = integers(0, 6, 12)
    logits, weights = python(model, torch.tensor(pixels).view(1, 3, 4))
    yield {"tokens": pixels, "by": [1, 5], "heads": "all"}, said(logits[0].flatten(0, 1), weights)


def beams():
    tiny = row(0, 0)
    model, config, shapes = made("Transformer", SEQ2SEQ | {"norm_first": True}, 1, tiny, tiny, torch.tensor([2]))

    def step(tokens, state):
        logits, state = model.decoder(tokens[:, None], state)
        return logits[:, 0], state

    asked, wanted = [], []
    for beam_size, length_penalty in ((1, 0.0), (2, 0.6), (4, 0.6), (3, 0.0), (5, 1.0)):
        for seed in range(3):
            source = integers(seed, 9, 5 + seed)
            state = model.decoder.init_state(model.encoder(row(*source)), None)
            found = beam_search(step, state, 1, 2, 12, beam_size, length_penalty, num_return=beam_size)
            options = {"bos": 1, "eos": 2, "max_len": 12, "beam_size": beam_size, "length_penalty": length_penalty}
            asked.append({"source": source, "options": options})
            wanted.append(list(map(sequence, found.tokens[0].tolist(), found.scores[0])))
    return "searched", [config, shapes, 1, asked], wanted


def sequence(tokens, score):
    end = tokens.index(2) + 1 if 2 in tokens else 12
    return {"tokens": tokens[:end], "score": rounded(score)[0]}
