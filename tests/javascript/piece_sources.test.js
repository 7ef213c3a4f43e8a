// Pieces of weights on the page's side: each is checked, what has come stays, and what goes wrong is told in words.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { afterEach, beforeEach, test } from "node:test";
import { bringPieces, pieceIntact, piecesOfFiles, piecesOfHost } from "../../d2lmini/figures/page/piece_sources.js";

const PIECES = [0, 1, 2, 3].map((i) => new Uint8Array(1000 + i).fill(i)),
  MANIFEST = PIECES.map((data, i) => ({
    file: `m_${i}.bin`,
    bytes: data.length,
    sha256: createHash("sha256").update(data).digest("hex"),
  })),
  ALL = PIECES.map((data, i) => [i, data.length, i]),
  FINE = { stored: 0, refused: "" },
  NOTHING = { get: async () => undefined, put: async () => {}, drop: async () => {} };

let wrong = {}, // what is wrong with a file
  asked = [],
  handed = [],
  told = [],
  done = new Set(),
  host,
  server;

beforeEach(async () => {
  [wrong, asked, handed, told, done] = [{}, [], [], [], new Set()];
  server = createServer(({ url }, answer) => {
    const file = url.slice(1),
      data = Buffer.from(PIECES[MANIFEST.findIndex((piece) => piece.file === file)]);
    asked.push(file);
    const kinds = {
      busy: () => answer.writeHead(503).end(data),
      cut: () => answer.writeHead(200, { "content-length": data.length }).write(data.subarray(0, 100), broken),
      short: () => answer.end(data.subarray(0, 100)),
      long: () => answer.end(Buffer.concat([data, Buffer.from("x")])),
      damaged: () => answer.end(Buffer.concat([data.subarray(1), Buffer.from("?")])),
    };
    const broken = () => answer.destroy(); // fewer bytes than announced
    (kinds[wrong[file]] ?? (() => answer.end(data)))();
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  host = piecesOfHost(`http://127.0.0.1:${server.address().port}/`);
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function hand(i, buffer) {
  handed.push([i, buffer.byteLength, new Uint8Array(buffer)[0]]);
  structuredClone(buffer, { transfer: [buffer] }); // it is gone, as a worker takes it
}

// What came of bringing the pieces, or why they did not come.
const bring = (source, more = {}) =>
  bringPieces(MANIFEST, source, {
    done,
    hand,
    store: NOTHING,
    signal: new AbortController().signal,
    told: (bytes) => told.push(bytes),
    ...more,
  }).catch((error) => (error.name === "AbortError" ? "aborted" : error.message));

test("all pieces come in order, and how far it is is told", async () => {
  assert.deepEqual(await bring(host), FINE);
  assert.deepEqual(handed, ALL);
  assert.deepEqual(
    told,
    told.toSorted((a, b) => a - b),
  );
  assert.equal(told.at(-1), 4006);
  assert.deepEqual(
    asked,
    MANIFEST.map(({ file }) => file),
  );
});

for (const [kind, said] of Object.entries({
  busy: "the server answers 503 for m_2.bin",
  cut: "the connection broke in the middle of m_2.bin",
  short: "m_2.bin has 100 bytes, expected 1002",
  long: "m_2.bin has more than 1002 bytes, expected 1002",
  damaged: "m_2.bin is damaged: its SHA-256 is not the one that it was made with",
}))
  test(`of a file that is ${kind} it is told, and only the rest is brought again`, async () => {
    wrong = { "m_2.bin": kind };
    assert.equal(await bring(host), said);
    assert.deepEqual(handed, ALL.slice(0, 2));
    wrong = {};
    assert.deepEqual(await bring(host), FINE);
    assert.deepEqual(handed, ALL);
    assert.deepEqual(asked.slice(3), ["m_2.bin", "m_3.bin"]);
  });

test("a host that is gone", async () => {
  const why = await bring(piecesOfHost("http://127.0.0.1:1/"));
  assert.equal(why, "m_0.bin cannot be reached; perhaps the network is down");
  assert.deepEqual(handed, []);
});

test("who stops keeps what is there", async () => {
  const control = new AbortController();
  const stops = async (i, buffer) => {
    await hand(i, buffer);
    if (i === 1) control.abort();
  };
  assert.equal(await bring(host, { hand: stops, signal: control.signal }), "aborted");
  assert.equal(handed.length, 2);
  assert.deepEqual(await bring(host), FINE);
  assert.deepEqual(handed, ALL);
});

const files = (...numbers) => numbers.map((i) => new File([PIECES[i]], MANIFEST[i].file));

test("files are picked in any order, or as one", async () => {
  const several = piecesOfFiles(files(3, 1, 0, 2), MANIFEST),
    whole = piecesOfFiles([new File(files(0, 1, 2, 3), "all.bin")], MANIFEST);
  for (const source of [several, whole]) {
    done.clear();
    assert.equal(source.wrong, "");
    assert.deepEqual(await bring(source), FINE);
  }
  assert.deepEqual(handed, [...ALL, ...ALL]);
});

test("files that are not the pieces", () => {
  const wrongOf = (picked) => piecesOfFiles(picked, MANIFEST).wrong,
    none = "none of these files is a piece of the model, expected m_0.bin, m_1.bin, m_2.bin and 1 more";
  assert.equal(wrongOf(files(0, 1, 3)), "missing: m_2.bin");
  assert.equal(wrongOf([new File(["a cat"], "cat.png")]), none);
  assert.equal(wrongOf([]), none);
});

test("a picked file of another size or content", async () => {
  const [a, b, c, d] = files(0, 1, 2, 3),
    put = (bytes) => piecesOfFiles([a, new File([new Uint8Array(bytes)], b.name), c, d], MANIFEST);
  assert.equal(await bring(put(7)), "m_1.bin has 7 bytes, expected 1001");
  assert.match(await bring(put(1001)), /^m_1\.bin is damaged/);
  assert.deepEqual(handed, ALL.slice(0, 1));
});

test("a store that is full or forbidden does no harm", async () => {
  const no = (why) => () => Promise.reject(new Error(why));
  const store = { ...NOTHING, get: no("no"), put: no("the quota is used up") };
  assert.deepEqual(await bring(host, { store, keep: true }), { stored: 0, refused: "the quota is used up" });
  assert.deepEqual(handed, ALL);
});

test("without a source, what the store lacks is named", async () => {
  assert.equal(await bring(null), "the browser's store has not got m_0.bin");
});

test("without the browser's sums only sizes are checked", async () => {
  Object.defineProperty(crypto, "subtle", { value: undefined, configurable: true });
  wrong = { "m_1.bin": "damaged" };
  assert.deepEqual(await bring(host), FINE);
  assert.equal(await pieceIntact(MANIFEST[0], new ArrayBuffer(3)), false);
  delete crypto.subtle;
});
