// The real model's pieces on their way into a worker that is played: what has come stays, until the worker goes.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { beforeEach, test } from "node:test";

let feeds, refuse, manifest;
globalThis.d2lminiLive = {
  manifest: async () => manifest ?? Promise.reject(new Error("gone")),
  async feed() {
    const feed = { missing: new Set([0, 1, 2]), given: [] };
    feeds.push(feed);
    return {
      missing: async () => [...feed.missing],
      async piece(i) {
        if (refuse[i]) throw new Error(refuse[i]);
        feed.given.push(i);
        feed.missing.delete(i);
      },
      done: async () => feed.missing.size && Promise.reject(new Error("pieces are missing")),
    };
  },
};
const { realModelPieces } = await import("../../d2lmini/figures/real_model/bring.js");

const DATA = [0, 1, 2].map((i) => new Uint8Array(10).fill(i)),
  sha256 = (data) => createHash("sha256").update(data).digest("hex"),
  PIECES = DATA.map((data, i) => ({ file: `m_${i}.bin`, bytes: 10, sha256: sha256(data) })),
  SOURCE = async ({ file }) => DATA[Number(file[2])].slice().buffer;

let kept, told, model;
const store = {
  get: async ({ file }) => kept.get(file)?.slice(0),
  put: async ({ file }, buffer) => kept.set(file, buffer.slice(0)),
  drop: async ({ file }) => kept.delete(file),
};
beforeEach(() => {
  [feeds, refuse, kept, told, manifest] = [[], {}, new Map(), [], { pieces: PIECES }];
  model = realModelPieces("m", store);
});
const bring = (source, keep = false) =>
  model.bring(() => source, {
    keep: () => keep,
    signal: new AbortController().signal,
    told: (bytes) => told.push(bytes),
    anew: () => told.push("anew"),
    last: () => told.push("last"),
  });

test("all pieces come, and how far it is is told", async () => {
  assert.match(await bring(SOURCE), /^Loaded in \d+\.\d s\.$/);
  assert.deepEqual([feeds[0].given, kept.size], [[0, 1, 2], 0]);
  assert.deepEqual(told, ["anew", 10, 20, 30, "last"]);
});

test("what is kept comes from this browser, and a store that is full is told of", async () => {
  await bring(SOURCE, true);
  model.forget();
  assert.equal(model.begun(), false);
  assert.match(await bring(null), /^Loaded from this browser in/);
  model.forget();
  kept.clear();
  store.put = () => Promise.reject(new Error("it is full"));
  assert.match(await bring(SOURCE, true), / s\. This browser did not keep it: it is full\.$/);
});

test("after a damaged piece the rest is brought, into the same worker", async () => {
  refuse = { 1: "piece 1 was damaged" };
  await assert.rejects(bring(SOURCE), /piece 1 was damaged/);
  assert.equal(model.begun(), true);
  refuse = {};
  await bring(SOURCE);
  assert.deepEqual([feeds.length, feeds[0].given], [1, [0, 1, 2]]);
});

test("after a worker that has gone all is brought again", async () => {
  refuse = { 2: "the worker has stopped" };
  await assert.rejects(bring(SOURCE), /the worker has stopped/);
  assert.equal(model.begun(), false);
  refuse = {};
  await bring(SOURCE);
  assert.deepEqual(feeds[1].given, [0, 1, 2]);
});

test("without a list of pieces, or with wrong files, nothing is begun", async () => {
  await assert.rejects(bring(Object.assign(SOURCE, { wrong: "missing: m_1.bin" })), /^Error: missing: m_1.bin$/);
  delete SOURCE.wrong;
  model = realModelPieces("m", store);
  manifest = null;
  await assert.rejects(bring(SOURCE), /its list of pieces cannot be reached/);
  assert.deepEqual([feeds, told], [[], []]);
});
