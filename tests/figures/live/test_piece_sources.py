"""Pieces of weights on the page's side: each is checked, what has come stays, and what goes wrong is told in words."""

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
const handed = [], done = new Set(), told = [], control = new AbortController();
const nothing = { get: async () => undefined, put: async () => {}, drop: async () => {} };
const hand = async (i, buffer) => {
  handed.push([i, buffer.byteLength, new Uint8Array(buffer)[0]]);
  buffer.transfer?.();
};
const bring = (source, more = {}) => bringPieces(manifest, source,
  { done, hand, store: nothing, signal: control.signal, told: (bytes) => told.push(bytes), ...more })
  .catch((error) => error.name === "AbortError" ? "aborted" : error.message);
const host = window.host ??= piecesOfHost("/");
"""


class Host(http.server.BaseHTTPRequestHandler):
    """Serves the pieces; `wrong` says what is wrong with some of them."""

    wrong, asked = {}, []

    def do_GET(self):
        name = self.path.removeprefix("/")
        if name == "":
            return self.answer(200, b"<!doctype html><link rel=icon href=data:,>", "text/html")
        Host.asked.append((name, self.headers.get("Cache-Control")))
        number = next(i for i, piece in enumerate(MANIFEST) if piece["file"] == name)
        data, wrong = PIECES[number], Host.wrong.get(name)
        if wrong == "cut":  # fewer bytes than announced: the connection breaks
            self.answer(200, data[:100], length=len(data))
            return self.connection.close()
        data = {"short": data[:100], "long": data + b"x", "damaged": data[:-1] + b"?"}.get(wrong, data)
        self.answer(503 if wrong == "busy" else 200, data)

    def answer(self, status, data, kind="application/octet-stream", length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length or len(data)))
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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("busy", "the server answers 503 for m_2.bin"),
        ("cut", "the connection broke in the middle of m_2.bin"),
        ("short", "m_2.bin has 100 bytes, expected 1002"),
        ("long", "m_2.bin has more than 1002 bytes, expected 1002"),
        ("damaged", "m_2.bin is damaged: its SHA-256 is not the one that it was made with"),
    ],
)
def test_what_breaks_is_told_and_only_the_rest_is_brought_again(pieces, wrong, said):
    assert pieces("const why = await bring(host); return [why, handed];", **{"m_2.bin": wrong}) == [said, ALL[:2]]
    result = pieces("for (const i of [0, 1]) done.add(i); return [await bring(host), handed];")
    assert result == [{"stored": 0, "refused": ""}, ALL[2:]]
    assert [name for name, _ in Host.asked] == ["m_2.bin", "m_3.bin"]


@pytest.mark.parametrize("wrong", ["short", "damaged"])
def test_a_damaged_piece_is_not_taken_out_of_the_cache_again(pieces, wrong):
    """The server lets it be kept, so only a fresh request brings another one."""
    pieces("await bring(host);", **{"m_0.bin": wrong})
    assert pieces("return [await bring(host), handed.length];") == [{"stored": 0, "refused": ""}, 4]
    assert Host.asked[0] == ("m_0.bin", "no-cache")


def test_a_host_that_is_gone(pieces):
    body = 'const why = await bring(piecesOfHost("http://127.0.0.1:1/")); return [why, handed];'
    assert pieces(body) == ["m_0.bin cannot be reached; perhaps the network is down", []]


def test_who_stops_keeps_what_is_there(pieces):
    body = """const stops = async (i, buffer) => { await hand(i, buffer); if (i === 1) control.abort(); };
        const why = await bring(host, { hand: stops });
        const { signal } = new AbortController();
        return [why, handed.length, await bring(host, { signal }), handed];"""
    assert pieces(body) == ["aborted", 2, {"stored": 0, "refused": ""}, ALL]


FILES = """const files = (...numbers) => numbers.map((i) =>
    new File([new Uint8Array(manifest[i].bytes).fill(i)], manifest[i].file));"""


def test_files_are_picked_in_any_order_or_as_one(pieces):
    body = f"""{FILES} const source = piecesOfFiles(files(3, 1, 0, 2), manifest);
        const whole = piecesOfFiles([new File(files(0, 1, 2, 3), "all.bin")], manifest);
        const first = await bring(source);
        done.clear();
        return [source.wrong, first, await bring(whole), whole.wrong, handed];"""
    fine = {"stored": 0, "refused": ""}
    assert pieces(body) == ["", fine, fine, "", [*ALL, *ALL]]


@pytest.mark.parametrize(
    ("picked", "said"),
    [
        ("files(0, 1, 3)", "missing: m_2.bin"),
        (
            "[new File(['a cat'], 'cat.png')]",
            "none of these files is a piece of the model, expected m_0.bin, m_1.bin, ",
        ),
        ("[]", "none of these files is a piece of the model, expected m_0.bin, m_1.bin, m_2.bin and 1 more"),
    ],
)
def test_files_that_are_not_the_pieces(pieces, picked, said):
    assert pieces(f"{FILES} return piecesOfFiles({picked}, manifest).wrong;").startswith(said)


def test_a_picked_file_of_another_size_or_content(pieces):
    body = f"""{FILES} const [a, b, c, d] = files(0, 1, 2, 3);
        const cut = piecesOfFiles([a, new File([new Uint8Array(7)], b.name), c, d], manifest);
        const other = piecesOfFiles([a, new File([new Uint8Array(1001)], b.name), c, d], manifest);
        return [await bring(cut), await bring(other), handed];"""
    cut, other, handed = pieces(body)
    assert cut == "m_1.bin has 7 bytes, expected 1001" and other.startswith("m_1.bin is damaged")
    assert handed == ALL[:1]


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


def test_a_store_that_is_full_or_forbidden_does_no_harm(pieces):
    body = """const full = { ...nothing, get: () => Promise.reject(new Error("no")),
          put: () => Promise.reject(new Error("the quota is used up")) };
        return [await bring(host, { store: full, keep: true }), handed];"""
    assert pieces(body) == [{"stored": 0, "refused": "the quota is used up"}, ALL]


def test_a_piece_that_the_worker_refuses_is_not_kept(pieces):
    body = """const store = pieceStore(), refuses = async () => { throw new Error("piece 0 was damaged"); };
        return [await bring(host, { store, keep: true, hand: refuses }), await store.count(), done.size];"""
    assert pieces(body) == ["piece 0 was damaged", 0, 0]


def test_without_the_browsers_sums_only_sizes_are_checked(pieces):
    body = """Object.defineProperty(crypto, "subtle", { value: undefined, configurable: true });
        const found = [await bring(host), await pieceIntact(manifest[0], new ArrayBuffer(3))];
        delete crypto.subtle;
        return found;"""
    assert pieces(body, **{"m_1.bin": "damaged"}) == [{"stored": 0, "refused": ""}, False]
