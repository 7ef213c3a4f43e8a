// A text that a model writes on: what it is asked for, and what is shown at the reader's pace.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { MOST, PACES, textWriter } from "../../d2lmini/figures/page/text_writer.js";

mock.timers.enable({ apis: ["setTimeout"] });
let asked, said, set, alive, writer;

beforeEach(() => {
  [asked, said, set, alive] = [[], [], { pace: "reading", cache: true, seed: 3 }, true];
  writer = textWriter({
    ask: (options, take) =>
      new Promise((_, reject) => asked.push({ options, take, reject, text: [...options.tokens], stopped: false })),
    stop: () => asked.at(-1) && Object.assign(asked.at(-1), { stopped: true }),
    settings: () => set,
    alive: () => alive,
    paint: () => {},
    say: (text) => said.push(text),
  });
  writer.begin([5, 6]);
});

// What the model tells of the characters at some places; of those after the prompt, which it wrote, with their cost.
const rows = (...places) => ({
  rows: places.map((at) => ({
    at,
    token: 10 + at,
    first: 0,
    cost: at < 2 ? null : { positions: at, milliseconds: 1 },
  })),
});
const wait = () => mock.timers.tick(PACES[set.pace].wait);

test("a prompt is read, and nothing is written", () => {
  const { options, take } = asked[0];
  assert.deepEqual([options.count, options.draws, options.seed], [0, 0, 3]);
  assert.ok(!("pace" in options));
  take(rows(0, 1));
  mock.timers.tick(0);
  assert.deepEqual([writer.now.rows.length, writer.now.text, said], [2, [5, 6], []]);
});

test("characters come one by one, and are counted", () => {
  writer.go(3);
  asked[1].take(rows(0, 1, 2, 3, 4));
  for (const length of [3, 4, 5]) {
    wait();
    assert.equal(writer.now.text.length, length);
  }
  assert.deepEqual([writer.now.text, writer.now.left], [[5, 6, 12, 13, 14], 0]);
  assert.deepEqual(writer.now.spent[0], { cache: true, characters: 3, positions: 9, milliseconds: 3 });
  assert.deepEqual(said, ["The text has 5 characters, 2 of them the prompt."]);
});

test("after a pause nothing comes, and the next question goes on from there with its random numbers", () => {
  writer.go(9);
  asked[1].take(rows(0, 1, 2, 3, 4));
  wait();
  writer.pause();
  mock.timers.tick(1000);
  assert.deepEqual([writer.now.text, said, asked[1].stopped], [[5, 6, 12], ["Paused at character 3."], true]);
  writer.go(1);
  assert.deepEqual([asked[2].text, asked[2].options.draws], [[5, 6, 12], 1]);
});

test("what changes meanwhile holds from the next character on", () => {
  writer.go(9);
  asked[1].take(rows(0, 1, 2, 3));
  wait();
  Object.assign(set, { seed: 4, pace: "fast" });
  writer.resume();
  assert.deepEqual([asked[2].options.count, asked[2].options.seed, asked[2].text], [8, 4, [5, 6, 12]]);
  writer.pause();
  writer.resume(); // it does not write, so it is not asked
  assert.equal(asked.length, 3);
});

test("the text goes back, with another character after that", () => {
  assert.equal(writer.back(1, 9), false);
  assert.deepEqual([writer.now.text, writer.now.given], [[5, 6, 9], 2]);
  assert.equal(writer.back(0), true);
  assert.deepEqual([writer.now.text, writer.now.given], [[5], 1]);
});

test("a text has an end", () => {
  writer.begin(Array.from({ length: MOST - 1 }, () => 0));
  writer.go(400);
  assert.equal(asked.at(-1).options.count, 1);
  writer.begin(Array.from({ length: MOST }, () => 0));
  const before = asked.length;
  writer.go(1);
  assert.equal(asked.length, before);
  assert.match(said.at(-1), /as many as fit/);
});

test("an error is told, and a figure that has left the page asks no more", async () => {
  asked[0].reject(new Error("it broke"));
  await new Promise(setImmediate);
  assert.deepEqual(said, ["The model has stopped: it broke."]);
  writer.go(5);
  asked[1].take(rows(0, 1, 2));
  alive = false;
  wait();
  assert.deepEqual([writer.now.text, asked[1].stopped], [[5, 6], true]);
});
