"""A model in pieces is Python's on the same weights, in all that a reader may ask of it; what it has read serves again.

The model is small, of random weights, in a GGUF file like SmolLM2's.
"""

import base64
import json
import random
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from small_gguf import BLOCKS, CONTEXT, HEADS, small_pieces
from torch.testing import assert_close

from d2lmini.hooks import capture_attention, head_masks
from d2lmini.models.pretrained.gguf_file import GGUF, load_gguf
from d2lmini.models.weights.rounding import restored, rounded
from d2lmini.models.weights.smollm2 import tokenizer_of

TEXT = "the user is in the house, 12 of 345 é 😀 stones\n\n  ou"
LOAD = """
const { manifest, texts, order } = given, pieces = await live.Pieces.begin(manifest);
for (const i of order) pieces.put(i, Uint8Array.from(atob(texts[i]), (letter) => letter.charCodeAt(0)).buffer);
"""
# A task to its end: {steps, done, left}; `stop`: after so many steps.
ASK = """
const before = live.memoryUsed(), steps = [];
const run = ([task, options, stop = Infinity]) => {
  const work = live.TASKS[task](kept.small, options), steps = [];
  for (;;) {
    const { value, done } = live.tidy(() => work.next());
    if (done) return { steps, done: value };
    steps.push(value);
    if (steps.length === stop) { work.return(); return { steps, done: null }; }
  }
};
const told = given.map((asked) => {
  try { return run(asked); } catch (error) { return { error: error.message }; }
});
return { told, left: live.memoryUsed() - before };
"""


def python_model(file):
    """With the embedding as the page has it."""
    model = load_gguf(file)
    kept = rounded({"weight": model.embedding.weight}, "int8")
    with torch.no_grad():
        model.embedding.weight.copy_(restored(kept)["weight"])
    return model


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The folder of pieces, their manifest, the Python model and its tokenizer."""
    path, folder, manifest = small_pieces(tmp_path_factory)
    file = GGUF(path)
    texts = [base64.b64encode((folder / piece["file"]).read_bytes()).decode() for piece in manifest["pieces"]]
    return manifest, texts, python_model(file), tokenizer_of(file.settings)


@pytest.fixture(scope="module")
def ask(live, small):
    """Runs tasks (name, options, most steps) in the page, whose model came in pieces, the last one first."""
    manifest, texts, _, _ = small
    given = {"manifest": manifest, "texts": texts, "order": list(range(len(texts)))[::-1]}
    live(f"{LOAD} kept.small = pieces.finish();", given)

    def ask(*asked):
        found = live(ASK, asked)
        assert found["left"] == 0
        return found["told"]

    yield ask
    live("kept.small.free();")


def rows_of(told):
    return [row for step in told["steps"] for row in step["rows"]]


def floats(**options):
    return {"text": TEXT, "float_products": True, **options}


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor([ids]))[0]


def test_a_small_model_comes_in_several_pieces(small):
    manifest, texts, _, words = small
    assert len(texts) > 5 and len(words.encode(TEXT)) > 32  # several slices
    assert any(part["row"] for piece in manifest["pieces"] for part in piece["parts"] if part["kind"] != "json")


@pytest.mark.parametrize("exact", [True, False], ids=["floats", "integers"])
def test_losses_are_pythons(exact, ask, small):
    *_, model, words = small
    ids = words.encode(TEXT)
    logits = logits_of(model, ids)[:-1].log_softmax(-1)
    want = F.nll_loss(logits, torch.tensor(ids[1:]), reduction="none")
    (told,) = ask(("real_losses", floats(float_products=exact, top=3)))
    rows = rows_of(told)
    assert [row["token"] for row in rows] == ids and rows[0]["nats"] is None and rows[0]["next"] is None
    near = 1e-4 if exact else 5e-3
    assert_close(torch.tensor([row["nats"] for row in rows[1:]]), want, rtol=0, atol=near)
    p, best = logits.exp().topk(3)
    assert_close(torch.tensor([row["next"]["p"] for row in rows[1:]]), p, rtol=0, atol=near)
    if exact:
        assert [row["next"]["ids"] for row in rows[1:]] == best.tolist()
        assert told["done"]["nats"] == pytest.approx(want.mean().item(), abs=1e-4)
    assert told["done"]["tokens"] == len(ids) - 1


def test_attention_weights_and_what_each_block_would_say_are_pythons(ask, small):
    *_, model, words = small
    ids, heads = words.encode(TEXT), [[0, 3], [2, 0], [0, 1]]
    states = []
    hooks = [blk.register_forward_hook(lambda *called: states.append(called[2][0])) for blk in model.blks]
    with capture_attention(model) as record:
        logits_of(model, ids)
    for hook in hooks:
        hook.remove()
    weights = [next(calls[0][0] for name, calls in record.items() if f"blks.{i}." in name) for i in range(BLOCKS)]
    with torch.no_grad():
        states = torch.stack([model.embedding.weight[ids], *states])  # (blocks + 1, T, h)
        p, best = model.dense(model.norm(states)).softmax(-1).topk(5)
    whole, part = ask(
        ("real_look", floats(heads=heads, layers=True)), ("real_look", floats(heads=heads, layers=True, **{"from": 30}))
    )
    rows = rows_of(whole)
    assert [(row["at"], row["token"]) for row in rows] == list(enumerate(ids))
    for row in rows:
        for (block, head), look in zip(heads, row["looks"], strict=True):
            assert_close(
                torch.tensor(look).float(), weights[block][head, row["at"], : row["at"] + 1], rtol=0, atol=1e-5
            )
        assert_close(torch.tensor([one["p"] for one in row["layers"]]), p[:, row["at"]], rtol=0, atol=1e-4)
        assert [one["ids"][0] for one in row["layers"]] == best[:, row["at"], 0].tolist()
    for row, again in zip(rows[30:], rows_of(part), strict=True):
        assert again["at"] == row["at"] and again["layers"][1]["ids"] == row["layers"][1]["ids"]
        assert_close(torch.tensor(again["looks"][1]), torch.tensor(row["looks"][1]), rtol=0, atol=1e-6)


def test_what_is_switched_off_is_off(ask, small):
    *_, model, words = small
    ids = words.encode(TEXT)
    off = [{"block": 0, "head": 2}, {"block": 0, "head": 0}, {"block": 1}]
    mask = torch.tensor([0.0, 1.0, 0.0, 1.0])
    kept = model.blks
    try:
        model.blks = torch.nn.ModuleList([kept[0], kept[2]])
        name = next(name for name, module in model.named_modules() if name.endswith("blks.0.attention"))
        with head_masks(model, {name: mask}):
            want = logits_of(model, ids)[-1].softmax(-1)
    finally:
        model.blks = kept
    whole = logits_of(model, ids)[-1].softmax(-1)
    count = {"count": 0, "top": len(words)}
    asked = [floats(off=off, **count), floats(**count), floats(off=off, **count)]
    for told, p in zip(ask(*(("real_write", options) for options in asked)), (want, whole, want), strict=True):
        found = torch.zeros(len(words))
        found[told["steps"][-1]["next"]["ids"]] = torch.tensor(told["steps"][-1]["next"]["p"])
        assert_close(found, p, rtol=0, atol=1e-5)
    assert not torch.allclose(want, whole, atol=0.01)


def greedy(model, ids, count):
    ids = list(ids)
    for _ in range(count):
        ids.append(logits_of(model, ids)[-1].argmax().item())
    return ids


def test_greedy_tokens_and_what_is_told_of_them(ask, small):
    *_, model, words = small
    ids = words.encode(TEXT)
    want = greedy(model, ids, 20)
    end = next((i for i in range(len(ids), len(want)) if want[i] in (0, words.stop)), None)
    assert end is None  # with these weights it does not stop
    (told,) = ask(("real_write", floats(count=20, filters={"temperature": 0}, top=4, heads=[[1, 1]], layers=True)))
    steps = [step for step in told["steps"] if "at" in step]
    assert told["steps"][0] == {"reading": {"done": 8, "total": len(ids)}}
    assert told["done"]["tokens"] == want and told["done"]["why"] == "count" and told["done"]["prompt"] == len(ids)
    assert [step["token"] for step in steps] == want[len(ids) - 1 :]
    assert [step["written"] for step in steps] == [False] + [True] * 20
    assert told["done"]["text"] == "".join(step["text"] for step in steps)
    for before, step in pairwise(steps):
        p = logits_of(model, want[: step["at"]])[-1].softmax(-1)
        assert step["p"] == pytest.approx(p.max().item(), abs=1e-4)
        assert before["next"]["ids"][0] == step["token"] and before["next"]["drawn"] == [1, 0, 0, 0]
        assert len(step["looks"][0]) == step["at"] + 1 and sum(step["looks"][0]) == pytest.approx(1, abs=1e-5)
        assert step["layers"][BLOCKS]["ids"][0] == step["next"]["ids"][0]


def test_writing_goes_on_where_it_was_stopped(ask):
    options = floats(count=12, filters={"temperature": 1.5, "top_k": 30}, seed=4)
    (whole,) = ask(("real_write", options))
    tokens, prompt = whole["done"]["tokens"], whole["done"]["prompt"]
    (cut,) = ask(("real_write", options, 6))
    written = [step["token"] for step in cut["steps"] if step.get("written")]
    assert len(written) == 5 and written == tokens[prompt : prompt + 5]
    so_far = tokens[: prompt + len(written)]
    more = options | {"tokens": so_far, "draws": len(written), "count": 12 - len(written)}
    (rest,) = ask(("real_write", more))
    assert rest["done"]["tokens"] == tokens and rest["done"]["draws"] == 12
    assert [step for step in rest["steps"] if "reading" in step] == []  # its keys and values are there


def test_another_beginning_is_read_anew(ask):
    options = {"count": 0, "float_products": True}
    texts = [TEXT, TEXT.replace("the user", "a user"), TEXT]
    told = ask(*(("real_write", options | {"text": text}) for text in texts))
    last = [one["steps"][-1]["next"]["p"] for one in told]
    assert last[0] == pytest.approx(last[2], abs=1e-6) and last[0] != pytest.approx(last[1], abs=1e-3)
    integers = ask(("real_write", options | {"text": TEXT, "float_products": False}))[0]["steps"]
    assert "reading" in integers[0]  # other products have other keys


def test_a_stop_token_ends_it(ask, small, live):
    *_, model, words = small
    likely = logits_of(model, words.encode(TEXT))[-1].argmax().item()
    live("kept.own = kept.small.tokenizer; kept.small.tokenizer = { ...kept.own, stop: [given] };", likely)
    try:
        (told,) = ask(("real_write", floats(count=9, filters={"temperature": 0})))
    finally:
        live("kept.small.tokenizer = kept.own;")
    assert told["done"]["why"] == "stop" and told["done"]["tokens"][-1] == likely
    assert told["steps"][-1]["next"] is None and told["steps"][-1]["written"]


def test_a_full_context_ends_it_and_a_longer_text_is_refused(ask):
    tokens = [20 + i % 100 for i in range(CONTEXT)]
    told = ask(
        ("real_write", {"tokens": tokens[:-2], "count": 9}),
        ("real_write", {"tokens": [*tokens, 5]}),
        ("real_losses", {"text": "ê" * CONTEXT}),
        ("real_look", {"text": "x" * 60 * CONTEXT}),
    )
    assert told[0]["done"]["why"] in ("context", "stop") and len(told[0]["done"]["tokens"]) <= CONTEXT
    said = f"but the model reads at most {CONTEXT}"
    assert told[1]["error"] == f"the text is too long: {CONTEXT + 1} tokens, {said}"
    assert all("the text is too long" in one["error"] and said in one["error"] for one in told[1:3])
    assert "at least" in told[3]["error"]


BAD = {
    "there is no text": ("real_write", {"text": ""}),
    "9999 is none of the 281 tokens": ("real_losses", {"tokens": [1, 9999]}),
    f"there is no block {BLOCKS}, only 0 to {BLOCKS - 1}": ("real_write", {"text": "a", "off": [{"block": BLOCKS}]}),
    f"there is no head {HEADS}, only 0 to": ("real_write", {"text": "a", "off": [{"block": 0, "head": HEADS}]}),
    f"there is no head 0 of block {BLOCKS}": ("real_look", {"text": "a", "heads": [[BLOCKS, 0]]}),
    "there is no place 7 of 1": ("real_look", {"text": "a", "from": 7}),
    "a message is of robot, expected system, user": ("tokenize", {"messages": [{"role": "robot", "content": "a"}]}),
    "a message spells the special token <|im_end|>": (
        "real_write",
        {"messages": [{"role": "user", "content": "a<|im_end|>"}]},
    ),
}


def test_what_cannot_be_done_is_said_and_the_next_question_is_answered(ask, small):
    *_, words = small
    good = ("tokenize", {"text": TEXT})
    told = ask(*BAD.values(), good)
    for said, one in zip(BAD, told, strict=False):
        assert said in one.get("error", ""), (said, one)
    assert told[-1]["done"]["ids"] == words.encode(TEXT)


def random_texts(number):
    rng = random.Random(1)
    parts = [
        *"abcdxyz AÉ'’-_.,!?0579 \t\n\r",
        "the ",
        " user",
        "  ",
        "\n\n",
        "'s",
        "'ll",
        "é",
        "中文",
        "😀",
        "🏽",
        "\u200d",
    ]
    parts += [
        "½",
        "Ⅷ",
        "٣٤",
        "\u00a0",
        "\u0085",
        "\u2028",
        "\x1c",
        "\ufeff",
        "\u3000",
        "שלום",
        "한국",
        "e\u0301",
        "<|im_end|>",
    ]
    return ["".join(rng.choices(parts, k=rng.randint(1, 40))) for _ in range(number)]


def test_tokens_are_pythons(ask, small):
    *_, words = small
    texts = random_texts(200)
    for text, told in zip(texts, ask(*(("tokenize", {"text": text}) for text in texts)), strict=True):
        assert told["done"]["ids"] == words.encode(text), repr(text)
        assert not any(told["done"]["special"])
    talks = [
        [{"role": "user", "content": "the user 12"}],
        [{"role": "system", "content": "é"}, {"role": "user", "content": " a\n"}, {"role": "assistant", "content": ""}],
    ]
    for talk, told in zip(talks, ask(*(("tokenize", {"messages": talk}) for talk in talks)), strict=True):
        assert told["done"]["ids"] == words.encode_chat(talk)
        pieces_of = told["done"]["pieces"]
        assert "".join(pieces_of) == words.chat(talk) and any(told["done"]["special"])


def damaged(texts, manifest):
    content = base64.b64decode(texts[2])
    return [
        (2, base64.b64encode(content[:-4] + bytes([content[-4] ^ 1]) + content[-3:]).decode()),
        (2, base64.b64encode(content[:-4]).decode()),
        (2, texts[1]),
        (len(texts), texts[1]),
    ]


def test_a_damaged_piece_may_come_again_and_all_must_be_there(live, small):
    manifest, texts, *_ = small
    told = live(
        """const buffer = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
        const before = live.memoryUsed(), pieces = await live.Pieces.begin(given.manifest), said = [];
        const attempt = (work) => { try { work(); said.push(null); } catch (error) { said.push(error.message); } };
        for (const [i, text] of given.damaged) attempt(() => pieces.put(i, buffer(text)));
        given.texts.forEach((text, i) => { if (i !== 1) pieces.put(i, buffer(text)); });
        attempt(() => pieces.finish());
        attempt(() => pieces.put(2, buffer("")));
        attempt(() => pieces.put(1, buffer(given.texts[1])));
        const loaded = pieces.finish();
        loaded.free();
        return { said, left: live.memoryUsed() - before };""",
        {"manifest": manifest, "texts": texts, "damaged": damaged(texts, manifest)},
    )
    cut = "piece 2 was cut or damaged on its way"
    none = f"there is no piece {len(texts)}, only {len(texts)}"
    assert told == {"said": [cut, cut, cut, none, "pieces 1 are missing", None, None], "left": 0}


def _changed(manifest, **changes):
    return json.loads(json.dumps(manifest)) | changes


def test_manifests_that_are_not_understood_leave_no_memory(live, small):
    manifest, *_ = small
    other_kind = _changed(manifest)
    parts = [part for piece in other_kind["pieces"] for part in piece["parts"]]
    next(part for part in parts if part["name"] == "norm.weight")["kind"] = "q2"
    manifests = [
        _changed(manifest, format="d2lmini pieces 9"),
        _changed(manifest, model="Mamba"),
        _changed(manifest, memory=10**10),
        other_kind,
    ]
    told = live(
        """const before = live.memoryUsed(), said = [];
        for (const manifest of given)
          await live.Pieces.begin(manifest).catch((error) => said.push([error.message, live.outOfMemory(error)]));
        return { said, left: live.memoryUsed() - before };""",
        manifests,
    )
    assert told["said"][0] == ["the model is of another version: d2lmini pieces 9", False]
    assert told["said"][1] == ["the pieces are of a Mamba, expected a GPT", False]
    assert "MB of memory" in told["said"][2][0] and told["said"][2][1]
    assert "is kept as q2, which this page does not know" in told["said"][3][0]
    assert told["left"] == 0
