// The models' runtime by itself: its products, its memory, what it refuses, and next tokens of large vocabularies.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { BERTForPretraining } from "../../d2lmini/figures/live/bert.js";
import { drawn, filtered, randomNumbers, ranked, shuffled } from "../../d2lmini/figures/live/filters.js";
import { GPT } from "../../d2lmini/figures/live/gpt.js";
import { ImageGPT } from "../../d2lmini/figures/live/image_gpt.js";
import { likeliest, NextToken } from "../../d2lmini/figures/live/next_token.js";
import { Int8Matrix, Q4Matrix } from "../../d2lmini/figures/live/quantized.js";
import { TASKS } from "../../d2lmini/figures/live/tasks.js";
import * as tensor from "../../d2lmini/figures/live/tensor.js";
import { makeTokenizer } from "../../d2lmini/figures/live/tokenizers.js";
import { Transformer } from "../../d2lmini/figures/live/transformer_seq2seq.js";
import { ViT } from "../../d2lmini/figures/live/vit.js";
import { half } from "../../d2lmini/figures/live/weights.js";

const { memoryUsed, part, prepare, Tensor, tidy } = tensor;
const VALUES = JSON.parse(readFileSync(new URL("values.json", import.meta.url), "utf8"));
const MODELS = { BERTForPretraining, GPT, ImageGPT, Transformer, ViT };

// The first model of a kind in cases/models.py, with weights of its shapes.
function model(kind) {
  const { given } = VALUES.models.cases.find(({ given }) => given[0] === kind),
    [, config, shapes] = given,
    random = randomNumbers(0);
  const weights = new Map(Object.entries(shapes).map(([name, shape]) => [name, tensor.lasting(new Tensor(...shape))]));
  for (const { data } of weights.values()) data.forEach((_, i) => (data[i] = random() - 0.5));
  return new MODELS[kind]((name) => weights.get(name) ?? null, config);
}

const messageOf = (work) => {
  try {
    tidy(work);
  } catch (error) {
    return error.message;
  }
  return null;
};

function sum(k, f) {
  let total = 0;
  for (let p = 0; p < k; p++) total += f(p);
  return total;
}

// Products of A and B, and the number of each at (i, j).
const PRODUCTS = [
  [tensor.multiply, (A, B, k, i, j) => sum(k, (p) => A(i, p) * B(p, j))],
  [tensor.multiplyTransposed, (A, B, k, i, j) => sum(k, (p) => A(i, p) * B(j, p))],
  [tensor.multiplyFirstTransposed, (A, B, k, i, j) => sum(k, (p) => A(p, i) * B(p, j))],
];

const SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 20]; // kernels take up to 16 columns at once

// How far the product of a kind is off, of parts that begin at row and column `at` of random matrices that are `more`
// columns wider; what lies around it has to stay as it was.
function off(kind, { at, more, n, k, m }, random) {
  const [product, wanted] = PRODUCTS[kind],
    numbers = (size) => Float32Array.from({ length: size }, () => random() - 0.5);
  const [rows, inner] = kind === 2 ? [k, n] : [n, k],
    [deep, wide] = kind === 1 ? [m, k] : [k, m],
    A = Tensor.from(numbers((rows + 1) * (inner + more)), rows + 1, inner + more),
    B = Tensor.from(numbers((deep + 1) * (wide + more)), deep + 1, wide + more),
    C = Tensor.from(Array((n + 1) * (m + more)).fill(7), n + 1, m + more);
  product(part(A, at, at), part(B, at, at), part(C, at, at), n, k, m);
  const of =
    ({ data, columns }) =>
    (i, j) =>
      data[(i + at) * columns + j + at];
  const [a, b, c] = [A, B, C].map(of);
  let worst = 0;
  for (let i = -at; i <= n - at; i++)
    for (let j = -at; j < m + more - at; j++) {
      const inside = i >= 0 && i < n && j >= 0 && j < m;
      worst = Math.max(worst, Math.abs(c(i, j) - (inside ? wanted(a, b, k, i, j) : 7)));
    }
  return worst;
}

for (const simd of [true, false])
  test(`products of all sizes beside plain sums, ${simd ? "simd" : "plain"}`, async () => {
    assert.equal(await prepare({ simd }), simd ? "simd" : "plain");
    const random = randomNumbers(1),
      before = memoryUsed();
    for (const [at, more] of [
      [0, 0],
      [1, 3],
    ])
      for (const n of SIZES)
        for (const k of SIZES)
          for (const m of SIZES)
            for (const kind of [0, 1, 2]) {
              const size = { at, more, n, k, m },
                far = tidy(() => off(kind, size, random));
              if (!(far < 1e-5)) assert.fail(`${kind} ${JSON.stringify(size)}: off by ${far}`);
            }
    assert.equal(memoryUsed(), before);
  });

test("memory that grows in the middle of work", async () => {
  await prepare();
  tidy(() => {
    const A = Tensor.from([1, 2, 3, 4], 2, 2),
      before = A.data.buffer;
    new Tensor(1024, 1024, 8); // 32 MB
    const C = new Tensor(2, 2);
    tensor.multiply(part(A), part(A), part(C), 2, 2, 2);
    assert.deepEqual([...C.data], [7, 10, 15, 22]);
    assert.notEqual(A.data.buffer, before);
  });
});

test("too much memory is refused and work goes on", async () => {
  await prepare();
  const before = memoryUsed();
  for (let i = 0; i < 2; i++) assert.match(messageOf(() => new Tensor(1 << 28)) ?? "", /MB of memory/);
  assert.equal(
    tidy(() => Tensor.from([1, 2], 2).data.reduce((a, b) => a + b)),
    3,
  );
  assert.equal(memoryUsed(), before);
});

test("a tensor that was freed is not used", async () => {
  await prepare();
  const X = tensor.lasting(new Tensor(3)),
    before = memoryUsed();
  X.free();
  X.free();
  const [A, B] = [new Tensor(3), new Tensor(3)];
  assert.notEqual(A.place, B.place);
  assert.equal(memoryUsed() - before, 64);
  A.free();
  B.free();
  assert.throws(() => X.data, RangeError);
});

test("nothing is left after a thousand tasks", async () => {
  await prepare();
  const loaded = { model: model("GPT") },
    used = new Set();
  for (let i = 0; i < 1000; i++) {
    const tokens = i % 7 ? Array.from({ length: 1 + (i % 7) }, (_, j) => j) : [1, 99];
    messageOf(() => TASKS[i % 2 ? "logits" : "attention"](loaded, { tokens }).next());
    used.add(memoryUsed());
  }
  assert.equal(used.size, 1);
});

test("what does not fit is named, and leaves nothing behind", async () => {
  await prepare();
  const [gpt, bert, seq2seq, image, vit] = ["GPT", "BERTForPretraining", "Transformer", "ImageGPT", "ViT"].map(model),
    before = memoryUsed();
  for (const [work, said] of [
    [() => gpt.forward([]), "there are no tokens"],
    [() => gpt.forward([11]), "token 11 is none of the 11 of this model"],
    [() => gpt.forward([-1]), "token -1 is none"],
    [() => gpt.forward([0.5]), "token 0.5 is none"],
    [() => gpt.forward(Array(8).fill(0)), "8 tokens, but the context is 7"],
    [() => bert.forward([]), "there are no tokens"],
    [() => bert.forward(Array(8).fill(0)), "8 tokens, but the model"],
    [() => seq2seq.start([], 3), "there are no tokens"],
    [() => image.forward(Array(13).fill(0)), "13 pixels, but a picture has 12"],
    [() => vit.forward([1, 2]), "2 pixels, expected 36"],
    [() => new Q4Matrix([2, 33]), "rows of 33 weights, expected whole blocks of 32"],
    [() => new Int8Matrix([2, 80]), "rows of 80 weights, expected whole blocks of 32"],
  ]) {
    assert.ok(messageOf(work)?.startsWith(said), said);
    assert.equal(memoryUsed(), before);
  }
});

test("draws follow their probabilities, and a seed gives them again", () => {
  const [one, two] = [randomNumbers(7), randomNumbers(7)],
    probabilities = [0, 0.5, 0.2, 0.3],
    shares = [0, 0, 0, 0];
  for (let i = 0; i < 20000; i++) {
    const choice = drawn(probabilities, one);
    assert.equal(choice, drawn(probabilities, two));
    shares[choice] += 1 / 20000;
  }
  shares.forEach((share, i) => assert.ok(Math.abs(share - probabilities[i]) < 0.015));
  const order = shuffled([...Array(30).keys()], randomNumbers(3), 9);
  assert.deepEqual(
    order.slice(9),
    Array.from({ length: 21 }, (_, i) => i + 9),
  );
  assert.deepEqual(
    [...order.slice(0, 9)].sort((a, b) => a - b),
    [...Array(9).keys()],
  );
});

// Of 700 scores, with equals among them: the same probabilities, and the same draws by the same random numbers.
test("the next token of many is that of the filters", () => {
  const random = randomNumbers(3);
  const normal = () => sum(6, random) - 3;
  for (const filters of [
    ...[{}, { temperature: 0 }, { temperature: 0.6 }, { temperature: 2, top_k: 5 }, { top_k: 1 }, { top_p: 0.3 }],
    ...[{ top_p: 0.999 }, { top_p: 1 }, { top_k: 300, top_p: 0.8 }, { min_p: 0.05 }, { top_p: 0.9, min_p: 0.1 }],
    ...[
      { temperature: 0.5, top_k: 90, top_p: 0.97, min_p: 0.001 },
      { temperature: 5, top_p: 0.99 },
    ],
  ]) {
    const scores = Float32Array.from({ length: 700 }, (_, i) => (i % 10 ? 4 * normal() : 2)),
      next = new NextToken(scores, filters),
      [all, own] = [filtered(scores, filters), filtered(scores)],
      [one, two] = [randomNumbers(7), randomNumbers(7)];
    scores.forEach((_, id) => {
      assert.ok(Math.abs(next.own(id) - own[id]) < 1e-9);
      assert.ok(Math.abs(next.drawnWith(id) - all[id]) < 1e-9);
    });
    for (let i = 0; i < 200; i++) assert.equal(next.draw(one), drawn(all, two));
    assert.deepEqual(likeliest(scores, 80), ranked(scores).slice(0, 80));
  }
  assert.deepEqual(likeliest(Float32Array.from([1, 3, 2, 3]), 9), [1, 3, 2, 0]);
});

test("what word pieces tell, and special tokens in a text are letters", () => {
  const said = VALUES.tokenizers.cases.map(({ given }) => given[0]).find(({ kind }) => kind === "wordpiece"),
    words = makeTokenizer(said),
    ids = words.encode("the cats");
  assert.equal(words, makeTokenizer(said));
  assert.equal(words.mask, 4);
  assert.deepEqual(words.special, [0, 1, 2, 3, 4]);
  assert.deepEqual(words.pieces(ids), ["[CLS]", "the", "ca", "##t", "##s", "[SEP]"]);
  assert.equal(words.text(ids), "the cats");
  const spelled = words.encode("[MASK] [SEP]");
  assert.ok(!spelled.includes(4) && spelled.filter((id) => id === 3).length === 1);
  assert.throws(() => makeTokenizer({ kind: "runes" }), /the page does not know a tokenizer of kind runes/);
});

test("an enormous text is answered at once", () => {
  for (const { given } of VALUES.tokenizers.cases) {
    const [said] = given,
      words = makeTokenizer(said),
      start = performance.now();
    if (words.source && said.max_len)
      assert.throws(() => words.source("a".repeat(2e6) + " b".repeat(1e5)), /the text is too long/);
    else if (said.kind === "wordpiece") words.encode("a".repeat(2e5) + " b".repeat(2e5));
    assert.ok(performance.now() - start < 5000);
  }
});

test("a character of several tokens is told whole", () => {
  const said = VALUES.tokenizers.cases.map(({ given }) => given[0]).find(({ kind }) => kind === "chat"),
    words = makeTokenizer(said),
    ids = words.encode("é😀x"),
    written = [...ids, 1].map(words.writer());
  assert.ok(ids.length > 3 && written.includes("") && !written.some((text) => text.includes("\ufffd")));
  assert.equal(written.join(""), "é😀x");
});

test("numbers of 16 bits that are none", () => {
  assert.deepEqual([0x7c00, 0xfc00, 0x7c01, 0xfe00].map(half), [Infinity, -Infinity, NaN, NaN]);
});
