"""Pieces of weights in a browser, with its cache and its store; tests/javascript has what goes without."""

import hashlib
import http.server
import threading

import pytest

from tools.bundles import bundled

PIECES = [bytes([i]) * (1000 + i) for i in range(4)]
MANIFEST = [
    {"file": f"m_{i}.bin", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    for i, data in enumerate(PIECES)
]
TOTAL = sum(map(len, PIECES))
HELPERS = """
const { bringPieces, pieceStore, piecesOfHost } = page;
const handed = [], done = new Set(), told = [], { signal } = new AbortController();
const nothing = { get: async () => undefined, put: async () => {}, drop: async () => {} };
const hand = async (i, buffer) => {
  handed.push([i, buffer.byteLength, new Uint8Array(buffer)[0]]);
  buffer.transfer?.();
};
const bring = (source, more = {}) => bringPieces(manifest, source,
  { done, hand, store: nothing, signal, told: (bytes) => told.push(bytes), ...more })
  .catch(({ message }) => message);
const host = window.host ??= piecesOfHost("/");
"""


class Host(http.server.BaseHTTPRequestHandler):
    """Serves the pieces; `wrong` says what is wrong with some of them."""

    wrong, asked = {}, []

    def do_GET(self):
        name = self.path.removeprefix("/")
        if name == "":
            return self.answer(b"<!doctype html><link rel=icon href=data:,>", "text/html")
        Host.asked.append((name, self.headers.get("Cache-Control")))
        number = next(i for i, piece in enumerate(MANIFEST) if piece["file"] == name)
        data, wrong = PIECES[number], Host.wrong.get(name)
        self.answer({"short": data[:100], "damaged": data[:-1] + b"?"}.get(wrong, data))

    def answer(self, data, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=1000")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def pieces(chromium):
    """Runs the body of an async function in a page of a host that serves PIECES; `wrong` may be given."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.server_address[1]}/")

    def pieces(body, **wrong):
        Host.wrong, Host.asked = wrong, []
        helpers = bundled('export * from "./page/piece_sources.js";', "page") + HELPERS
        return page.evaluate(f"async (manifest) => {{ {helpers} {body} }}", MANIFEST)

    yield pieces
    context.close()
    server.shutdown()


ALL = [[i, len(data), i] for i, data in enumerate(PIECES)]


def test_all_pieces_come_in_order_and_how_far_it_is_is_told(pieces):
    result, handed, told = pieces("return [await bring(host), handed, told];")
    assert result == {"stored": 0, "refused": ""} and handed == ALL
    assert told == sorted(told) and told[-1] == TOTAL
    assert [name for name, _ in Host.asked] == [piece["file"] for piece in MANIFEST]


@pytest.mark.parametrize("wrong", ["short", "damaged"])
def test_a_damaged_piece_is_not_taken_out_of_the_cache_again(pieces, wrong):
    """The server lets it be kept, so only a fresh request brings another one."""
    pieces("await bring(host);", **{"m_0.bin": wrong})
    assert pieces("return [await bring(host), handed.length];") == [{"stored": 0, "refused": ""}, 4]
    assert Host.asked[0] == ("m_0.bin", "no-cache")


def test_what_is_kept_is_not_brought_again_until_it_is_forgotten(pieces):
    body = """const store = pieceStore(), counts = [await store.count(), (await indexedDB.databases()).length];
        const first = await bring(host, { store, keep: true });
        counts.push(await store.count());
        done.clear();
        const second = await bring(null, { store });
        await store.forget();
        counts.push(await store.count());
        done.clear();
        return [counts, first, second, handed, await bring(null, { store })];"""
    counts, first, second, handed, third = pieces(body)
    assert counts == [0, 0, 4, 0], "only what a reader asks for is kept"
    assert first["stored"] == 0 and second == {"stored": 4, "refused": ""} and handed == [*ALL, *ALL]
    assert third == "the browser's store has not got m_0.bin"
    assert len(Host.asked) == 4


def test_what_was_kept_and_is_damaged_is_brought_again(pieces):
    body = """const store = pieceStore();
        await store.put(manifest[1], new Uint8Array(1001).buffer);
        await store.put(manifest[2], new Uint8Array(5).buffer);
        const result = await bring(host, { store });
        return [result, handed, await store.count()];"""
    assert pieces(body) == [{"stored": 0, "refused": ""}, ALL, 0]


def test_a_piece_that_the_worker_refuses_is_not_kept(pieces):
    body = """const store = pieceStore(), refuses = async () => { throw new Error("piece 0 was damaged"); };
        return [await bring(host, { store, keep: true, hand: refuses }), await store.count(), done.size];"""
    assert pieces(body) == ["piece 0 was damaged", 0, 0]
