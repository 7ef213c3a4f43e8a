"""The runtime: one script of all modules, its memory and products, a worker that may be absent or die, bad weights."""

import base64
import json
import zlib

import numpy as np
import pytest
import torch

from tools import live_kernels
from tools.bundles import bundled, runtime

from .conftest import random_file

GPT = dict(vocab_size=17, max_len=11, num_hiddens=12, num_heads=2, num_blks=2, dropout=0.0)
TOKENS = torch.zeros(1, 2, dtype=torch.long)


def test_the_kernels_are_what_their_generator_writes():
    pytest.importorskip("wasmtime", reason="wasmtime, which makes kernels.js, is not installed")
    assert live_kernels.PATH.read_text(encoding="utf-8") == live_kernels.source()


PRODUCTS = """
const kind = await live.prepare({ simd: given.simd }), most = 20, random = live.randomNumbers(1), told = [];
const numbers = (n) => Array.from({ length: n }, () => Math.fround(random() - 0.5));
const before = live.memoryUsed();
let worst = 0, touched = 0;
for (const [n, k, m] of given.sizes) live.tidy(() => {
  const lda = k + given.more, ldc = m + given.more;
  for (const transposed of [false, true]) {
    const [rows, columns] = transposed ? [m, k] : [k, m], ldb = columns + given.more;
    const A = live.Tensor.from(numbers((n + 1) * lda), n + 1, lda);
    const B = live.Tensor.from(numbers((rows + 1) * ldb), rows + 1, ldb);
    const C = live.Tensor.from(Array((n + 1) * ldc).fill(7), n + 1, ldc);
    const at = given.more ? 1 : 0; // a part that begins anywhere
    const product = transposed ? live.multiplyTransposed : live.multiply;
    const room = at + m <= ldc;
    product(live.part(A, at, at), live.part(B, at, at), live.part(C, at, at), n, k, m);
    for (let i = 0; i <= n; i++) for (let j = 0; j < ldc; j++) {
      const inside = i >= at && i < n + at && j >= at && j < m + at, c = C.data[i * ldc + j];
      if (!inside) { touched += c !== 7; continue; }
      let sum = 0;
      for (let p = 0; p < k; p++)
        sum += A.data[i * lda + p + at] *
          (transposed ? B.data[j * ldb + p + at] : B.data[(p + at) * ldb + j]);
      worst = Math.max(worst, Math.abs(sum - c));
    }
    if (n * k * m < 60) told.push([transposed, n, k, m, A.data.slice(), B.data.slice(), C.data.slice()]);
  }
});
return { kind, worst, touched, told, left: live.memoryUsed() - before };
"""


@pytest.mark.parametrize("simd", [True, False], ids=["simd", "plain"])
@pytest.mark.parametrize("more", [0, 3])
def test_products_of_all_sizes(more, simd, live):
    """Against a plain sum in float64, and the small ones against numpy too; what lies around is left alone."""
    every = range(1, 21)
    sizes = [(n, k, m) for n in every for k in every for m in every]
    found = live(PRODUCTS, {"sizes": sizes, "more": more, "simd": simd})
    assert found["kind"] == ("simd" if simd else "plain")
    assert found["worst"] < 1e-5 and found["touched"] == 0 and found["left"] == 0
    at = 1 if more else 0
    for transposed, n, k, m, *numbers in found["told"][::7]:
        A, B, C = (np.array(one, dtype=np.float32) for one in numbers)
        A = A.reshape(n + 1, -1)[at : n + at, at : k + at]
        rows, columns = (m, k) if transposed else (k, m)
        B = B.reshape(rows + 1, -1)[at : rows + at, at : columns + at]
        C = C.reshape(n + 1, -1)[at : n + at, at : m + at]
        np.testing.assert_allclose(A @ (B.T if transposed else B), C, atol=1e-6)


def test_nothing_is_left_after_a_thousand_tasks(live, in_both):
    in_both("gpt_published", "GPT", GPT, warm_up=[TOKENS])
    told = live(
        """await live.prepare();
        const loaded = kept.gpt_published, used = [];
        for (let i = 0; i < 1000; i++) {
          const task = live.TASKS[i % 2 ? "logits" : "attention"];
          const options = { tokens: Array.from({ length: 1 + (i % 11) }, (_, j) => j) };
          try {
            live.tidy(() => task(loaded, i % 7 ? options : { tokens: [1, 99] }).next());
          } catch {}
          used.push(live.memoryUsed());
        }
        return used;"""
    )
    assert len(set(told)) == 1


def test_memory_that_grows_in_the_middle_of_work(alone):
    told = alone(
        """await live.prepare();
        return live.tidy(() => {
          const A = live.Tensor.from([1, 2, 3, 4], 2, 2), before = A.data.buffer;
          new live.Tensor(1024, 1024, 8); // 32 MB
          const C = new live.Tensor(2, 2);
          live.multiply(live.part(A), live.part(A), live.part(C), 2, 2, 2);
          return { product: C.data.slice(), grown: A.data.buffer !== before };
        });"""
    )
    assert told == {"product": [7, 10, 15, 22], "grown": True}


def test_too_much_memory_is_refused_and_work_goes_on(live):
    told = live(
        """await live.prepare();
        const before = live.memoryUsed(), said = [];
        for (let i = 0; i < 2; i++)
          try { live.tidy(() => new live.Tensor(1 << 28)); } catch (error) { said.push(error.message); }
        const sum = live.tidy(() => live.Tensor.from([1, 2], 2).data.reduce((a, b) => a + b));
        return { said, sum, left: live.memoryUsed() - before };"""
    )
    assert len(told["said"]) == 2 and "MB of memory" in told["said"][0] and told["sum"] == 3 and told["left"] == 0


def test_a_tensor_that_was_freed_is_not_used(live):
    told = live(
        """await live.prepare();
        const X = live.lasting(new live.Tensor(3)), before = live.memoryUsed();
        X.free();
        X.free();
        const [A, B] = [new live.Tensor(3), new live.Tensor(3)];
        const apart = A.place !== B.place, back = before - live.memoryUsed();
        A.free(); B.free();
        try { X.data; return null; } catch (error) { return { apart, back, error: error.name }; }"""
    )
    assert told == {"apart": True, "back": -64, "error": "RangeError"}


# The page's side, in a page of its own: `{host}` as a script of a notebook, which has its files in itself.
HOST = """<!doctype html><meta charset="utf-8"><script>
window.said = [];
{before}
{host}
const {{ LIVE }} = page;
{runtime}</script>"""
TASK = """import { TASKS } from "./live/tasks.js";
TASKS.count = function* (_, { steps, milliseconds = 0, die = false }) {
  for (let i = 0; i < steps; i++) {
    const end = performance.now() + milliseconds;
    while (performance.now() < end);
    if (die) setTimeout(() => { throw new Error("out of luck"); });
    yield i;
  }
  return "all";
};"""


@pytest.fixture
def host_page(open_page, tmp_path):
    """A function that opens a page with host.js as `page`, the runtime and a task `count`; no model is there yet."""

    def host_page(before=""):
        host = bundled('export * from "./page/host.js";', "page")
        path = tmp_path / "host.html"
        text = HOST.format(before=before, host=host, runtime=runtime(TASK))
        path.write_text(text, encoding="utf-8")
        return open_page(path.as_uri())

    return host_page


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a file of weights."""
    return random_file(tmp_path_factory.mktemp("small"), "small", "GPT", GPT, warm_up=[TOKENS]).read_bytes()


def text_of(content):
    return base64.b64encode(content).decode()


DELIVER = "text => d2lminiLive.deliver('small', text)"
LOAD = """async (options) => {
  try { return await LIVE.load("small", options ?? {}); } catch (error) { return error.message; }
}"""
NO_WORKER = "delete window.Worker;"
FORBIDDEN = "window.Worker = class { constructor() { setTimeout(() => this.onerror(new Event('error'))); }"
FORBIDDEN += " postMessage() {} terminate() {} };"


@pytest.mark.parametrize("before", ["", NO_WORKER, FORBIDDEN], ids=["worker", "no worker", "forbidden worker"])
def test_a_task_goes_step_by_step_and_can_be_stopped(before, host_page, small):
    page = host_page(before)
    page.evaluate(DELIVER, text_of(small))
    assert page.evaluate(LOAD) == "simd" and page.evaluate("LIVE.has('small')")
    told = page.evaluate(
        """async () => {
          const steps = [], whole = LIVE.ask("small", "count", { steps: 3 }, (step) => steps.push(step));
          const next = LIVE.ask("small", "count", { steps: 1 }, (step) => steps.push("next " + step));
          const ends = [await whole.done, await next.done];
          const later = [];
          const cut = LIVE.ask("small", "count", { steps: 1e6 }, (step) => { later.push(step); cut.stop(); });
          const waits = LIVE.ask("small", "count", { steps: 5 }, (step) => later.push("waits " + step));
          waits.stop();
          ends.push(await cut.done, await waits.done);
          const again = LIVE.ask("small", "count", { steps: 0 });
          again.done.then(() => again.stop());
          ends.push(await again.done, await LIVE.ask("small", "count", { steps: 1 }, () => {}).done);
          return { steps, ends, later };
        }"""
    )
    assert told["steps"] == [0, 1, 2, "next 0"] and told["ends"] == ["all", "all", None, None, "all", "all"]
    assert len(told["later"]) < 1000 and not [step for step in told["later"] if isinstance(step, str)]
    assert page.log["errors"] == []


def test_without_a_worker_no_step_blocks_the_page(host_page, small):
    page = host_page(NO_WORKER)
    page.evaluate(DELIVER, text_of(small))
    page.evaluate(LOAD)
    turns = page.evaluate(
        """async () => {
          let turns = 0;
          const clock = setInterval(() => { turns += 1; }, 1);
          await LIVE.ask("small", "count", { steps: 12, milliseconds: 20 }, () => {}).done;
          clearInterval(clock);
          return turns;
        }"""
    )
    assert turns >= 6  # the page had its turn between the steps: none of them lasts longer than a step


def test_the_exported_models_take_short_steps(live, in_both):
    """A token of each takes far less than the 100 ms for which a page may stand still."""
    from d2lmini.models.weights import files

    if "gpt_shakespeare" not in files.names():
        pytest.skip("no weights are exported")
    in_both("gpt_shakespeare")
    milliseconds = live(
        """await live.prepare();
        const { model } = kept.gpt_shakespeare, state = model.empty_state(256), times = [];
        for (let i = 0; i < 60; i++) {
          const start = performance.now();
          live.tidy(() => model.extend([i], state).length);
          times.push(performance.now() - start);
        }
        state.free();
        return times.sort((a, b) => a - b)[30];"""
    )
    assert milliseconds < 100


def test_a_worker_that_dies_says_so_and_the_model_comes_again(host_page, small):
    page = host_page()
    page.evaluate(DELIVER, text_of(small))
    page.evaluate(LOAD)
    told = page.evaluate(
        """async () => {
          const said = [];
          const asks = [0, 1].map((i) => LIVE.ask("small", "count", { steps: 1e6, die: i === 0 }, () => {}));
          for (const { done } of asks) await done.catch((error) => said.push(error.message));
          said.push(LIVE.has("small"));
          said.push(await LIVE.ask("small", "count", { steps: 2 }, () => {}).done);
          return said;
        }"""
    )
    assert len(told) == 4 and "out of luck" in told[0] and "out of luck" in told[1] and told[2:] == [False, "all"]


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        (NO_WORKER + "delete window.WebAssembly;", "plain"),
        (NO_WORKER + "WebAssembly.instantiate = () => Promise.reject(new Error('no SIMD'));", "plain"),
    ],
    ids=["no WebAssembly", "no SIMD"],
)
def test_plain_javascript_where_webassembly_is_missing(before, kind, host_page, small):
    page = host_page(before)
    page.evaluate(DELIVER, text_of(small))
    assert page.evaluate(LOAD) == kind
    ask = "async () => [...(await LIVE.ask('small', 'logits', { tokens: [1, 2, 3] }).done).data]"
    got = page.evaluate(ask)
    fast = host_page()
    fast.evaluate(DELIVER, text_of(small))
    assert fast.evaluate(LOAD) == "simd"
    np.testing.assert_allclose(got, fast.evaluate(ask), atol=1e-5)


def test_plain_javascript_where_it_is_asked_for(host_page, small):
    page = host_page()
    page.evaluate(DELIVER, text_of(small))
    assert page.evaluate(LOAD, {"simd": False}) == "plain"


def _with(content, change):
    """A file whose header is changed."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def _metadata(**changes):
    return lambda content: _with(content, lambda header: header["__metadata__"].update(changes))


def _flipped(content):
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


def _without_a_layer(content):
    def change(header):
        header.pop("blks.0.attention.W_q.weight")

    return _with(content, change)


def _lies_outside(content):
    return _with(content, lambda header: header["embedding.weight"].update(data_offsets=[10**9, 10**9 + 204]))


BAD = {
    "nothing": (lambda content: b"", "the file is too short"),
    "another file": (lambda content: b"<!doctype html><p>404 not found</p>" * 9, "no safetensors file"),
    "cut in the header": (lambda content: content[:200], "the file is cut"),
    "cut in the data": (lambda content: content[:-100], "cut or damaged"),
    "damaged": (_flipped, "cut or damaged"),
    "damaged header": (lambda content: content[:9] + b"!!" + content[11:], "its beginning is damaged"),
    "no object": (lambda content: (4).to_bytes(8, "little") + b"null", "its beginning is damaged"),
    "foreign": (lambda content: _with(content, lambda header: header.pop("__metadata__")), "nothing says"),
    "another version": (_metadata(format="d2lmini weights 9"), "of another version: d2lmini weights 9"),
    "an unknown model": (_metadata(model="Mamba"), "of a Mamba, which this page does not know"),
    "an object's own name": (_metadata(model="toString"), "of a toString, which this page does not know"),
    "a layer is missing": (_without_a_layer, "do not fit a GPT"),
    "outside": (_lies_outside, "embedding.weight does not fit into the file"),
    "an unknown activation": (
        lambda content: _with(
            content,
            lambda header: header["__metadata__"].update(
                config=json.dumps(json.loads(header["__metadata__"]["config"]) | {"ffn": "mish"})
            ),
        ),
        "does not know the activation mish",
    ),
}


def test_bad_weights_are_named_and_a_second_load_succeeds(host_page, small):
    page = host_page()
    for name, (change, said) in BAD.items():
        page.evaluate(DELIVER, text_of(change(small)))
        told = page.evaluate(LOAD)
        assert said in told, f"{name}: {told}"
        assert not page.evaluate("LIVE.has('small')")
    page.evaluate(DELIVER, "%%%")
    assert "base64" in page.evaluate(LOAD) or "encoded" in page.evaluate(LOAD)
    assert page.evaluate(
        "async () => { try { await LIVE.load('other'); } catch (error) { return error.message; } }"
    ) == ("other is not in this page")
    page.evaluate(DELIVER, text_of(small))
    assert page.evaluate(LOAD) == "simd"
    told = page.evaluate(
        """async () => { try { await LIVE.ask("small", "sing", {}).done; } catch (error) { return error.message; } }"""
    )
    assert told == "there is no task sing" and page.log["errors"] == []


def test_bad_weights_leave_no_memory(live, small):
    texts = [text_of(change(small)) for change, _ in BAD.values()]
    told = live(
        """await live.prepare();
        const used = [live.memoryUsed()];
        for (const text of given) {
          try { live.readModel(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer); } catch {}
          used.push(live.memoryUsed());
        }
        return used;""",
        texts,
    )
    assert len(set(told)) == 1


def test_half_precision_and_the_checksum(live, in_both, small):
    model = in_both("half", "GPT", GPT, warm_up=[TOKENS], bits="float16")
    with torch.no_grad():
        want = model(torch.arange(5)[None])[0].flatten()
    got = live("return live.tidy(() => kept.half.model.forward([0, 1, 2, 3, 4]).data.slice());")
    np.testing.assert_allclose(got, want.numpy(), atol=1e-4)
    bits = list(range(0, 1 << 16, 37))
    halves = np.array(bits, dtype=np.uint16).view(np.float16).astype(np.float64)
    told = live("return given.map((bits) => String(live.half(bits)));", bits)
    for number, other in zip(halves, told, strict=True):
        assert float(other.replace("Infinity", "inf")) == number or (np.isnan(number) and other == "NaN")
    assert live("return live.crc32(Uint8Array.from(given));", list(small[:999])) == zlib.crc32(small[:999])
