"""The page's side of a model in pieces: fed with a worker or without one, damaged, dropped, gone with its worker."""

import base64
import json

import pytest
from small_gguf import write_small_gguf

from d2lmini.models.weights import model_pieces
from tools.bundles import bundled, runtime

HOST = """<!doctype html><meta charset="utf-8"><script>
{before}
{host}
const {{ LIVE }} = page;
{runtime}
const buffer = (i) => Uint8Array.from(atob(texts[i]), (letter) => letter.charCodeAt(0)).buffer;
const told = (promise) => promise.then((done) => done ?? null, (error) => error.message);
const whole = async () => {{
  const feed = await LIVE.feed(manifest);
  for (let i = 0; i < texts.length; i++) await feed.piece(i, buffer(i));
  await feed.done();
}};
const greedy = {{ text: "the user", count: 3, filters: {{ temperature: 0 }} }};
const write = () => LIVE.ask("smollm2", "real_write", greedy, () => {{}});
</script>"""
TASK = """
import { ChatTokenizer } from "./live/chat_tokenizer.js";
import { TASKS } from "./live/tasks.js";
ChatTokenizer.prototype.isStop = () => false;
TASKS.die = function* () {
  setTimeout(() => { throw new Error("out of luck"); });
  for (;;) yield 1;
};"""
NO_WORKER = "delete window.Worker;"
FORBIDDEN = "window.Worker = class { constructor() { setTimeout(() => this.onerror(new Event('error'))); }"
FORBIDDEN += " postMessage() {} terminate() {} };"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The manifest of a small model, and its pieces in base64."""
    folder = tmp_path_factory.mktemp("pieces")
    path = write_small_gguf(tmp_path_factory.mktemp("gguf") / "small.gguf")
    manifest = model_pieces.make_pieces(folder, path, size=9000)
    return manifest, [base64.b64encode((folder / one["file"]).read_bytes()).decode() for one in manifest["pieces"]]


@pytest.fixture
def host_page(open_page, tmp_path, small):
    """A function that opens a page with host.js and the runtime in it, and runs the body of an async function there."""

    def host_page(body, before=""):
        manifest, texts = small
        given = f"{before} const manifest = {json.dumps(manifest)}, texts = {json.dumps(texts)};"
        path = tmp_path / "host.html"
        host = bundled('export * from "./page/host.js";', "page")
        path.write_text(HOST.format(before=given, host=host, runtime=runtime(TASK)), encoding="utf-8")
        page = open_page(path.as_uri())
        found = page.evaluate(f"(async () => {{ {body} }})()")
        return found, page.log["errors"]

    return host_page


@pytest.mark.parametrize("before", ["", NO_WORKER, FORBIDDEN], ids=["worker", "no worker", "forbidden worker"])
def test_pieces_are_taken_in_any_order_and_the_model_answers(before, host_page, small):
    number = len(small[1])
    found, errors = host_page(
        """const feed = await LIVE.feed(manifest), said = [];
        const bad = buffer(3);
        new Uint8Array(bad)[40] ^= 1;
        said.push(await told(feed.piece(3, bad)), feed.missing().length, await told(feed.done()), LIVE.has("smollm2"));
        const sent = texts.map((_, i) => buffer(i));
        await Promise.all(sent.map((_, i) => feed.piece(sent.length - 1 - i, sent[sent.length - 1 - i])));
        await feed.piece(0, buffer(0)); // again
        said.push(feed.missing().length, sent.every(({ byteLength }) => byteLength === 0));
        await feed.done();
        said.push(LIVE.has("smollm2"));
        const { why, tokens, prompt } = await write().done;
        return { said, why, written: tokens.length - prompt };""",
        before,
    )
    all_of_them = ", ".join(map(str, range(number)))
    said = ["piece 3 was cut or damaged on its way", number, f"pieces {all_of_them} are missing", False, 0, True, True]
    assert found == {"said": said, "why": "count", "written": 3} and errors == []


def test_what_is_dropped_is_gone_and_comes_again(host_page):
    found, errors = host_page(
        """const said = [];
        await LIVE.drop("smollm2"); // none is there
        await whole();
        const first = (await write().done).tokens;
        await LIVE.drop("smollm2");
        await LIVE.drop("smollm2");
        said.push(LIVE.has("smollm2"), await told(write().done));
        const feed = await LIVE.feed(manifest);
        await feed.piece(0, buffer(0));
        await LIVE.drop("smollm2"); // half of it
        said.push(await told(feed.piece(1, buffer(1))));
        await whole();
        await whole(); // in the place of the other
        said.push(JSON.stringify(first) === JSON.stringify((await write().done).tokens));
        return said;"""
    )
    assert found == [False, "the model has to be loaded again", "no pieces of smollm2 are expected", True]
    assert errors == []


def test_a_task_can_be_stopped_and_another_one_follows(host_page):
    found, errors = host_page(
        """await whole();
        const steps = [], long = LIVE.ask("smollm2", "real_write", { text: "a", count: 150 }, (step) => {
          steps.push(step);
          if (steps.length === 3) long.stop();
        });
        return [await long.done, steps.length < 20, (await write().done).why];""",
        NO_WORKER,  # a worker would be far ahead of the page
    )
    assert found == [None, True, "count"] and errors == []


def test_a_worker_that_dies_takes_the_model_with_it(host_page):
    found, _ = host_page(
        """await whole();
        const said = [await told(LIVE.ask("smollm2", "die", {}, () => {}).done)];
        said.push(LIVE.has("smollm2"), await told(write().done));
        await whole();
        said.push((await write().done).why);
        return said;"""
    )
    assert "out of luck" in found[0] and found[1:] == [False, "the model has to be loaded again", "count"]


NO_SIMD = NO_WORKER + "WebAssembly.instantiate = () => Promise.reject(new Error('no SIMD'));"


@pytest.mark.parametrize(
    "before", [NO_WORKER + "delete window.WebAssembly;", NO_SIMD], ids=["no WebAssembly", "no SIMD"]
)
def test_a_browser_without_simd_is_told(before, host_page):
    found, errors = host_page("return [await told(LIVE.feed(manifest)), LIVE.has('smollm2')];", before)
    said = "this browser has no WebAssembly SIMD, without which the model would be too slow: a newer one has"
    assert found == [said, False] and errors == []


def test_too_little_room_is_told_before_anything_is_sent(host_page):
    found, errors = host_page(
        """const feed = LIVE.feed({ ...manifest, memory: 2 ** 34 });
        return feed.then(() => null, (error) => [error.memory, error.message]);"""
    )
    assert found == [True, "this machine has too little memory for it"] and errors == []


def test_a_book_without_the_model_says_so(host_page):
    found, _ = host_page("return told(LIVE.manifest('smollm2'));")
    assert found == "smollm2 is not in this page"


def test_the_manifest_comes_as_a_script_delivers_it(host_page):
    found, _ = host_page(
        """d2lminiLive.deliver("smollm2", JSON.stringify(manifest));
        return (await LIVE.manifest("smollm2")).bytes === manifest.bytes;"""
    )
    assert found
