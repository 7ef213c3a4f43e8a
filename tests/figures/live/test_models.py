"""Every model of the page gives PyTorch's logits and PyTorch's attention weights on the same rounded weights."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from d2lmini.decoding import Filters, beam_search
from d2lmini.hooks import attention_rollout, capture_attention, head_masks
from d2lmini.models.weights import files

GPT = dict(vocab_size=17, max_len=11, num_hiddens=12, num_heads=2, num_blks=2, dropout=0.0)
GPTS = {
    "published": {},
    "gpt1": dict(norm_first=False, init="gpt1", ffn="gelu", tie_weights=False),
    "modern": dict(
        positions="rotary", norm="rms", ffn="squared_relu", use_bias=False, qk_norm=True, tie_weights=False, init="zero"
    ),
    "nowhere": dict(positions=None, ffn="relu", use_bias=False, num_blks=1),
    "odd": dict(positions="rotary", num_hiddens=30, num_heads=3, ffn_num_hiddens=7, qk_norm=True, vocab_size=5),
    "rms_after": dict(norm="rms", norm_first=False, positions="rotary", num_heads=1),
}
BERT = dict(vocab_size=23, max_len=13, num_hiddens=12, num_heads=3, num_blks=2, dropout=0.0, use_pooler=False)
BERTS = {
    "published": {},
    "modern": dict(
        activation="squared_relu", positions="rotary", norm_first=True, norm="rms", use_bias=False, qk_norm=True
    ),
    "albert": dict(activation="gelu_tanh", emb_size=5, share_blks=True, num_blks=3),
    "odd": dict(num_hiddens=21, num_segments=3, ffn_num_hiddens=10, norm_first=True),
}
SEQ2SEQ = dict(vocab_size=19, num_hiddens=12, ffn_num_hiddens=9, num_heads=3, num_blks=2, dropout=0.0)
VIT = dict(img_size=8, patch_size=2, num_hiddens=12, mlp_num_hiddens=10, num_heads=2, num_blks=2, num_classes=4)
VIT |= dict(num_channels=1, emb_dropout=0.0, blk_dropout=0.0, use_bias=True)
IMAGE = dict(img_size=(3, 5), num_levels=6, num_hiddens=8, ffn_num_hiddens=12, num_heads=2, num_blks=2)
SIMD = pytest.mark.parametrize("simd", [True, False], ids=["simd", "plain"])

# What a model says in the page, {logits, weights}; nothing that it made is left behind.
ASK = """
await live.prepare({ simd: given.simd ?? true });
const { model } = kept[given.name], before = live.memoryUsed(), { seen, weights } = live.watch();
const all = ({ shape, data }) => ({ shape, data: data.slice() });
const logits = live.tidy(() => { %s });
return { logits, weights, left: live.memoryUsed() - before };
"""
WHOLE = ASK % "return all(model.forward(given.tokens, { ...given.options, seen }));"
CACHED = (
    ASK
    % """
const state = model.empty_state(given.tokens.length, given.options?.padding), parts = [];
for (let i = 0; i < given.tokens.length; i += given.by)
  live.tidy(() => Array.from(model.extend(given.tokens.slice(i, i + given.by), state, given.options).data))
    .forEach((x) => parts.push(x));
state.free();
return { shape: [given.tokens.length, parts.length / given.tokens.length], data: parts };
"""
)
TRANSLATE = (
    ASK
    % """
const state = model.start(given.source, given.tokens.length, { ...given.options, seen }), parts = [];
const options = { ...given.target, seen };
for (let i = 0; i < given.tokens.length; i += given.by)
  live.tidy(() => Array.from(model.decoder.forward(given.tokens.slice(i, i + given.by), state, options).data))
    .forEach((x) => parts.push(x));
state.free();
return { shape: [given.tokens.length, parts.length / given.tokens.length], data: parts };
"""
)
PIXELS = ASK % "return all(model.forward(given.tokens, { seen, ...given.options }));"


def tensor(told):
    return torch.tensor(told["data"], dtype=torch.float32).view(told["shape"])


def some_tokens(size, number, seed=1):
    return torch.randint(size, (number,), generator=torch.Generator().manual_seed(seed))


def python(model, *inputs, masks=None, **options):
    """Logits of a model, and the attention weights of each module, without the batch."""
    with torch.no_grad(), capture_attention(model) as record, head_masks(model, masks or {}):
        logits = model(*inputs, **options)
    return logits, {name: [one[0] for one in calls] for name, calls in record.items() if calls}


def compare(told, logits, weights=None, first=0):
    assert told["left"] == 0
    assert_close(tensor(told["logits"])[first:], logits[first:], rtol=1e-4, atol=1e-4)
    if weights is not None:
        assert len(told["weights"]) == len(weights) > 0
        for one, other in zip(told["weights"], weights, strict=True):
            assert_close(tensor(one)[:, first:], other[:, first:], rtol=0, atol=1e-4)


def compare_all(live, cases):
    """Asks the page all at once: lists of what to run, what it is given, and what `compare` takes."""
    bodies = list(dict.fromkeys(body for body, *_ in cases))
    runs = ", ".join(f"async (given) => {{ {body} }}" for body in bodies)
    told = live(
        f"const runs = [{runs}], told = []; for (const [i, one] of given) told.push(await runs[i](one)); return told;",
        [(bodies.index(body), given) for body, given, *_ in cases],
    )
    for one, (_, _, *want) in zip(told, cases, strict=True):
        compare(one, *want)


@SIMD
@pytest.mark.parametrize("which", GPTS)
def test_a_gpt(which, simd, live, in_both):
    model = in_both(f"gpt_{which}", "GPT", GPT | GPTS[which], warm_up=[torch.zeros(1, 2, dtype=torch.long)])
    V, cases = model.config.vocab_size, []
    for length in (1, 6, GPT["max_len"]):
        tokens = some_tokens(V, length)
        given = {"name": f"gpt_{which}", "tokens": tokens.tolist(), "simd": simd}
        for padding in sorted({None, 1, 3} - {length}, key=str):
            if padding is not None and padding > length:
                continue
            options = {} if padding is None else {"padding": torch.tensor([padding])}
            logits, weights = python(model, tokens[None], **options)
            asked = given | {"options": {"padding": padding or 0}}
            cases.append((WHOLE, asked, logits[0], [calls[0] for calls in weights.values()], padding or 0))
            cases += [(CACHED, asked | {"by": by}, logits[0], None, padding or 0) for by in (1, 3)]
    compare_all(live, cases)


def test_heads_of_a_gpt_that_are_switched_off(live, in_both):
    model = in_both("gpt_modern", "GPT", GPT | GPTS["modern"], warm_up=[torch.zeros(1, 2, dtype=torch.long)])
    masks, tokens = [[0.0, 1.0], [1.0, 0.5]], some_tokens(17, 6)
    modules = {f"blks.{i}.attention": torch.tensor(mask) for i, mask in enumerate(masks)}
    logits, _ = python(model, tokens[None], masks=modules)
    given = {"name": "gpt_modern", "tokens": tokens.tolist(), "options": {"head_masks": masks}}
    compare(live(WHOLE, given), logits[0])
    compare(live(CACHED, given | {"by": 1}), logits[0])
    one = live(WHOLE, given | {"options": {"head_masks": [None, masks[1]]}})
    compare(one, python(model, tokens[None], masks={"blks.1.attention": torch.tensor(masks[1])})[0][0])


@SIMD
@pytest.mark.parametrize("which", BERTS)
def test_a_bert(which, simd, live, in_both):
    model = in_both(f"bert_{which}", "BERTForPretraining", BERT | BERTS[which], warm_up=[torch.zeros(1, 2).long()])
    kinds, cases = model.config.num_segments, []
    for length, causal in product((1, 5, BERT["max_len"]), (False, True)):
        tokens, segments = some_tokens(23, length), some_tokens(kinds, length, seed=2)
        for valid_len in {length, max(1, length - 2)}:
            options = {"valid_len": valid_len, "causal": causal, "segments": segments.tolist()}
            given = {"name": f"bert_{which}", "tokens": tokens.tolist(), "simd": simd, "options": options}
            with torch.no_grad(), capture_attention(model) as record:
                X = model.bert(tokens[None], segments[None], torch.tensor([valid_len]), causal=causal)
                logits = model.mlm(X)[0]
            weights = [call[0] for call in zip(*record.values(), strict=True) for call in call]
            cases.append((WHOLE, given, logits, weights))
    compare_all(live, cases)


@SIMD
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_translator(norm_first, simd, live, in_both):
    name = f"seq2seq_{norm_first}"
    tiny = torch.zeros(1, 2, dtype=torch.long)
    config = SEQ2SEQ | {"norm_first": norm_first, "pad": 0}
    model = in_both(name, "Transformer", config, warm_up=[tiny, tiny, torch.tensor([2])])
    own = [[1.0, 0.0, 0.5], [0.0, 1.0, 1.0]]
    cross, cases = [[0.0, 0.0, 1.0], None], []
    for (S, T), masked in product([(1, 1), (4, 6), (9, 3)], (False, True)):
        source, target = some_tokens(19, S), some_tokens(19, T, seed=2)
        for valid_len in {S, max(1, S - 2)}:
            masks, options, decoder = {}, {"valid_len": valid_len}, {}
            if masked:
                options["head_masks"] = own
                decoder = {"head_masks": {"own": own, "cross": cross}}
                for i in range(2):
                    masks[f"encoder.blks.{i}.attention"] = torch.tensor(own[i])
                    masks[f"decoder.blks.{i}.attention1"] = torch.tensor(own[i])
                masks["decoder.blks.0.attention2"] = torch.tensor(cross[0])
            logits, weights = python(model, source[None], target[None], torch.tensor([valid_len]), masks=masks)
            given = {"name": name, "source": source.tolist(), "tokens": target.tolist(), "simd": simd}
            given |= {"options": options, "target": decoder}
            cases.append((TRANSLATE, given | {"by": T}, logits[0], [calls[0] for calls in weights.values()]))
            cases.append((TRANSLATE, given | {"by": 1}, logits[0]))
    compare_all(live, cases)


@SIMD
def test_a_vision_transformer(simd, live, in_both):
    model = in_both("vit", "ViT", VIT)
    picture = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    logits, weights = python(model, picture[None, None])
    weights = [calls[0] for calls in weights.values()]
    told = live(PIXELS, {"name": "vit", "tokens": picture.flatten().tolist(), "simd": simd})
    compare(told, logits, weights)
    got = live("return live.attentionRollout(given)", told["weights"])
    assert_close(
        torch.tensor(got).view(17, 17), attention_rollout([one[None] for one in weights])[0], rtol=0, atol=1e-5
    )


def test_patches_of_a_vision_transformer_that_are_left_out_or_moved(live, in_both):
    model = in_both("vit", "ViT", VIT)
    picture = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    given = {"name": "vit", "tokens": picture.flatten().tolist()}
    kept = [0, 3, 7, 8, 15]
    X = torch.cat([model.cls_token, model.patch_embedding(picture[None, None])], 1)

    def scores(X):
        with torch.no_grad():
            for blk in model.blks:
                X = blk(X)
            return model.head(X[:, 0])

    positions = model.pos_embedding
    chosen = [0, *(patch + 1 for patch in kept)]
    compare(live(PIXELS, given | {"options": {"kept": kept}}), scores((X + positions)[:, chosen]))
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    moved = positions[:, [0, *(order + 1).tolist()]]
    compare(live(PIXELS, given | {"options": {"places": order.tolist()}}), scores(X + moved))
    nowhere = torch.cat([X[:, :1] + positions[:, :1], X[:, 1:]], 1)
    compare(live(PIXELS, given | {"options": {"places": [None] * 16}}), scores(nowhere))


@SIMD
def test_an_image_gpt(simd, live, in_both):
    pixels = torch.randint(6, (1, 3, 5), generator=torch.Generator().manual_seed(0))
    model = in_both("image_gpt", "ImageGPT", IMAGE, warm_up=[pixels])
    logits, weights = python(model, pixels)
    given = {"name": "image_gpt", "tokens": pixels.flatten().tolist(), "simd": simd}
    compare(live(PIXELS, given), logits[0].flatten(0, 1), [calls[0] for calls in weights.values()])
    stepped = (
        ASK
        % """
        const caches = model.empty_caches(), parts = [], inputs = [6, ...given.tokens.slice(0, -1)];
        for (const cut of [[0, 7], [7, 8], [8, 15]])
          live.tidy(() => Array.from(model.step(inputs.slice(...cut), caches).data)).forEach((x) => parts.push(x));
        for (const cache of caches) cache.free();
        return { shape: [15, 6], data: parts };"""
    )
    compare(live(stepped, given), logits[0].flatten(0, 1))


@pytest.mark.parametrize("name", files.names())
def test_an_exported_model(name, live, in_both):
    model = in_both(name)
    kind = type(model).__name__
    if kind == "Transformer":
        V = model.config.vocab_size
        source, target = some_tokens(V, 20), some_tokens(V, 23, seed=2)
        logits, weights = python(model, source[None], target[None], torch.tensor([20]))
        given = {"name": name, "source": source.tolist(), "tokens": target.tolist(), "options": {}, "by": 23}
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
            live(PIXELS, {"name": name, "tokens": picture.flatten().tolist()}),
            logits,
            [calls[0] for calls in weights.values()],
        )
    else:
        pixels = some_tokens(model.num_levels, 14 * 14).view(1, 14, 14)
        logits, weights = python(model, pixels)
        compare(
            live(PIXELS, {"name": name, "tokens": pixels.flatten().tolist()}),
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
def test_beam_search(beam_size, length_penalty, live, in_both):
    tiny = torch.zeros(1, 2, dtype=torch.long)
    config = SEQ2SEQ | {"norm_first": True, "pad": 0}
    models = [("seq2seq_True", in_both("seq2seq_True", "Transformer", config, warm_up=[tiny, tiny, torch.tensor([2])]))]
    if "translator_grammar" in files.names():
        models.append(("translator_grammar", in_both("translator_grammar")))
    for (name, model), seed in product(models, range(3)):
        tokenizer = getattr(model, "tokenizer", {"<bos>": 1, "<eos>": 2})
        bos, eos = tokenizer["<bos>"], tokenizer["<eos>"]
        source = some_tokens(model.config.vocab_size, 5 + seed, seed=seed)
        with torch.no_grad():
            want = _searched(model, source, beam_size, length_penalty, 12, bos, eos)
        given = {"name": name, "source": source.tolist(), "bos": bos, "eos": eos, "max_len": 12}
        told = live(BEAM, given | {"beam_size": beam_size, "length_penalty": length_penalty})
        assert told["left"] == 0 and 1 <= told["steps"] <= 12
        for i, found in enumerate(told["found"][:beam_size]):
            tokens = want.tokens[0, i, : len(found["tokens"])].tolist()
            assert found["tokens"] == tokens and found["score"] == pytest.approx(want.scores[0, i].item(), abs=1e-3)


def test_filters_are_pythons(live):
    generator = torch.Generator().manual_seed(0)
    cases = []
    for temperature, top_k, top_p, min_p in product(
        (1.0, 0.0, 0.3, 2.5, 1e-6), (None, 1, 5, 30), (None, 1e-9, 0.3, 0.9, 1.0), (None, 0.05, 1.0)
    ):
        logits = 3 * torch.randn(30, generator=generator)
        if len(cases) % 3 == 0:
            logits = logits.round()  # ties
        cases.append((logits, {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}))
    told = live(
        "return given.map(([logits, options]) => live.filtered(logits, options));",
        [(logits.tolist(), options) for logits, options in cases],
    )
    for (logits, options), got in zip(cases, told, strict=True):
        want = Filters(**options).probabilities(logits.double())
        assert_close(torch.tensor(got, dtype=torch.float64), want, rtol=1e-6, atol=1e-9, msg=str(options))


def test_draws_follow_their_probabilities(live):
    told = live(
        """const random = live.randomNumbers(given), again = live.randomNumbers(given), counts = [0, 0, 0, 0];
        let same = true;
        for (let i = 0; i < 20000; i++) {
          const choice = live.drawn([0, 0.5, 0.2, 0.3], random);
          same &&= choice === live.drawn([0, 0.5, 0.2, 0.3], again);
          counts[choice] += 1 / 20000;
        }
        return { counts, same };""",
        7,
    )
    assert told["same"]
    assert_close(torch.tensor(told["counts"]), torch.tensor([0, 0.5, 0.2, 0.3]), rtol=0, atol=0.015)


@pytest.mark.parametrize(
    ("name", "kind", "config", "call", "said"),
    [
        ("gpt_published", "GPT", GPT, "model.forward([])", "there are no tokens"),
        ("gpt_published", "GPT", GPT, "model.forward([17])", "token 17 is none of the 17 of this model"),
        ("gpt_published", "GPT", GPT, "model.forward([-1])", "token -1 is none"),
        ("gpt_published", "GPT", GPT, "model.forward([0.5])", "token 0.5 is none"),
        ("gpt_published", "GPT", GPT, "model.forward(Array(12).fill(0))", "12 tokens, but the context is 11"),
        ("bert_published", "BERTForPretraining", BERT, "model.forward([])", "there are no tokens"),
        ("bert_published", "BERTForPretraining", BERT, "model.forward(Array(14).fill(0))", "14 tokens, but the model"),
        ("seq2seq_False", "Transformer", SEQ2SEQ, "model.start([], 3)", "there are no tokens"),
        ("image_gpt", "ImageGPT", IMAGE, "model.forward(Array(16).fill(0))", "16 pixels, but a picture has 15"),
        ("vit", "ViT", VIT, "model.forward([1, 2])", "2 pixels, expected 64"),
    ],
)
def test_what_does_not_fit_is_named(name, kind, config, call, said, live, in_both):
    tiny = torch.zeros(1, 2, dtype=torch.long)
    if kind == "Transformer":
        in_both(name, kind, config | {"norm_first": False, "pad": 0}, warm_up=[tiny, tiny, torch.tensor([2])])
    else:
        warm_up = [torch.zeros(1, 3, 5).long()] if kind == "ImageGPT" else [] if kind == "ViT" else [tiny]
        in_both(name, kind, config, warm_up=warm_up)
    told = live(
        f"""const {{ model }} = kept[given], before = live.memoryUsed();
        let said = null;
        try {{ live.tidy(() => {{ {call}; }}); }} catch (error) {{ said = error.message; }}
        return {{ said, left: live.memoryUsed() - before }};""",
        name,
    )
    assert told["said"].startswith(said) and told["left"] == 0
