"""The runtime in a page: one script of all modules, a worker that may be absent or die, bad weights.

What its modules compute: tests/javascript.
"""

import base64
import json

import numpy as np
import pytest

from tools import live_kernels
from tools.bundles import bundled, runtime

from .conftest import random_file

GPT = dict(vocab_size=17, max_len=11, num_hiddens=12, num_heads=2, num_blks=2, dropout=0.0)


def test_the_kernels_are_what_their_generator_writes():
    pytest.importorskip("wasmtime", reason="wasmtime, which makes kernels.js, is not installed")
    assert live_kernels.PATH.read_text(encoding="utf-8") == live_kernels.source()


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
    return random_file(tmp_path_factory.mktemp("small"), "small", GPT).read_bytes()


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
