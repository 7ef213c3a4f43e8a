// The playground apart from what is seen of it: its tasks, what a reader has set, and what is kept of a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { randomNumbers } from "../../d2lmini/figures/live/filters.js";
import { firstSettings } from "../../d2lmini/figures/live/playground_settings.js";
import { PLAYGROUND_TASKS, PlaygroundTask } from "../../d2lmini/figures/live/playground_tasks.js";
import { PlaygroundRun, playgroundDifferences } from "../../d2lmini/figures/playground/run.js";
import { PlaygroundSession } from "../../d2lmini/figures/playground/session.js";

// ---- tasks
const letters = (text) => [...text];
const pairs = (text) => new Map((text.match(/../g) ?? []).map((pair) => [...pair]));
const digits = (number, length) => String(number).padStart(length, "0");
const added = (prompt) => {
  const [a, b] = prompt.slice(0, -1).split("+");
  return digits(Number(a) + Number(b), a.length + 1);
};
const same = (a, b) => a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);

// Whether an answer is right.
const RIGHT = {
  copy: (prompt, answer) => prompt === `${answer}>`,
  reverse: (prompt, answer) => prompt === `${letters(answer).reverse().join("")}>`,
  sort: (prompt, answer) => letters(prompt.slice(0, -1)).sort().join("") === answer && prompt.endsWith(">"),
  "look up": (prompt, answer) => same(pairs(prompt.slice(0, -1)), pairs(prompt.at(-1) + answer)),
  recall: (prompt, answer) =>
    new Set(prompt).size === prompt.length && letters(answer).every((l) => prompt.includes(l)),
  add: (prompt, answer) => answer === added(prompt),
};

// So many examples as {prompt, answer, given}, texts.
function examples(options, number, size, heldOut = false, random = randomNumbers(3)) {
  const task = new PlaygroundTask(options);
  return Array.from({ length: number }, () => {
    const { prompt, answer, given } = task.example(random, { heldOut, size });
    return { prompt: task.decode(prompt), answer: task.decode(answer), given };
  });
}

const prompts = (all) => new Set(all.map(({ prompt }) => prompt));

test("every task has answers beside which it is checked", () => {
  assert.deepEqual(Object.keys(RIGHT), PLAYGROUND_TASKS.slice(0, -1));
});

for (const [name, right] of Object.entries(RIGHT))
  test(`answers of ${name} are right, and held-out prompts are never trained on`, () => {
    for (const size of [3, 5]) {
      const [training, heldOut] = [false, true].map((kept) => examples({ name }, 500, size, kept)),
        [seen, kept] = [training, heldOut].map(prompts);
      assert.ok(seen.size > 200 && kept.size > 50);
      assert.ok([...kept].every((prompt) => !seen.has(prompt)));
      for (const { prompt, answer } of [...training, ...heldOut])
        assert.ok(right(prompt, answer), `${prompt} ${answer}`);
    }
  });

test("a sum from its last digit on", () => {
  for (const { prompt, answer } of examples({ name: "add", backwards: true }, 100, 3))
    assert.equal(letters(answer).reverse().join(""), added(prompt));
});

test("a letter of a piece follows the one before it in the word", () => {
  for (const { prompt, answer, given } of examples({ name: "recall" }, 200, 6)) {
    assert.ok(given[0] && !given.every(Boolean));
    letters(answer).forEach((letter, i) => assert.ok(given[i] || prompt.includes(answer[i - 1] + letter)));
  }
});

test("a few examples are drawn again and again", () => {
  const options = { name: "add", examples: 20 },
    [training, again] = [0, 1].map(() => prompts(examples(options, 400, 2))),
    kept = prompts(examples(options, 400, 2, true));
  assert.ok(training.size >= 18 && training.size <= 20 && kept.size > 200);
  assert.ok([...kept].every((prompt) => !training.has(prompt)));
  assert.deepEqual(training, again);
});

test("a text is cut into training and the last tenth", () => {
  const signs = Array.from({ length: 1000 }, (_, i) => String.fromCodePoint(0x4e00 + (i % 211))),
    text = signs.join("") + "🙂".repeat(91) + "é".repeat(20),
    options = { name: "text", text, size: 8 };
  const [training, heldOut] = [false, true].map((kept) => examples(options, 200, 8, kept));
  assert.ok(training.every(({ answer }) => !answer.includes("🙂") && answer.length === 8));
  for (const { prompt, answer } of [...training, ...heldOut]) {
    assert.equal([...(prompt + answer)].length, 9);
    assert.ok(text.includes(prompt + answer));
  }
  assert.equal(new PlaygroundTask(options).tokens.length, 211 + 2 + 1);
});

// What a model reads after the prompt, what it is to guess ("." for nothing), and the prompt.
function laid(causal, options) {
  const task = new PlaygroundTask(options),
    example = task.example(randomNumbers(0)),
    { tokens, targets, batch } = task.lay([example, example], causal),
    T = task.lengthOf(undefined, causal);
  const shown = (all) => Array.from(all.slice(0, T), (token) => (token < 0 ? "." : task.tokens[token])).join("");
  const prompt = task.decode(example.prompt);
  assert.equal(tokens.length / batch, T);
  assert.ok(shown(tokens).startsWith(prompt));
  return [shown(tokens).slice(prompt.length), shown(targets), prompt];
}

test("what a model reads and what it is to guess", () => {
  let [read, targets, prompt] = laid(true, { name: "reverse", size: 4 });
  const backwards = letters(prompt.slice(0, 4)).reverse().join("");
  assert.deepEqual([read, targets], [backwards.slice(0, 3), `....${backwards}`]);
  [read, targets] = laid(false, { name: "reverse", size: 4 });
  assert.deepEqual([read, targets], ["____", `.....${backwards}`]);
  [read, targets] = laid(true, { name: "look up", size: 3 });
  assert.equal(read.length, 4);
  assert.match(targets, /^\.{6}\d\.\d\.\d$/);
  [read, targets] = laid(false, { name: "look up", size: 3 });
  assert.match(read, /^_[a-z]_[a-z]_$/);
  assert.match(targets, /^\.{7}\d\.\d\.\d$/);
});

// ---- what is set
test("some settings go on with a run, the others begin another, which the old one stays behind", () => {
  const session = new PlaygroundSession(firstSettings());
  assert.equal(session.check(), "");
  session.begin();
  const { run } = session;
  run.take(told(1, [2]));
  session.put({ ...session.settings, rate: 0.1 });
  assert.deepEqual(run.changes, ["rate 0.003 → 0.1 at step 1"]);
  run.step = 12;
  session.put({ ...session.settings, blocks: 3 });
  assert.notEqual(session.key, run.key);
  session.begin();
  assert.deepEqual(session.earlier, [run]);
  session.put({ ...session.settings, task: "copy" });
  session.begin();
  assert.deepEqual(session.earlier, []); // another task has another loss
});

test("what does not fit is told, and a text may still have to come", () => {
  const session = new PlaygroundSession({ ...firstSettings(), task: "text" });
  assert.equal(session.check(), "");
  assert.equal(session.fit, null);
  session.texts.shakespeare = "to be or not to be\n".repeat(50);
  assert.equal(session.check(), "");
  assert.deepEqual(session.fit.read("be↵"), session.fit.task.encode("be\n"));
  assert.equal(session.fit.write(session.fit.read("be↵")), "be↵");
  assert.throws(() => session.fit.read(""), /it needs at least one token/);
  assert.throws(() => session.fit.read("b".repeat(40)), /this model reads at most/);
  session.put({ ...session.settings, text: "own" });
  assert.match(session.check(), /Paste a text of your own/);
  session.own = "short";
  assert.match(session.check(), /5 characters, expected at least/);
  session.put({ ...session.settings, task: "look up", size: 11 });
  assert.match(session.check(), /There are 11 pairs to look up, but only 10 letters/);
  assert.equal(session.fit, null);
});

test("held-out examples are shown without guesses", () => {
  const session = new PlaygroundSession(firstSettings());
  session.check();
  session.dress();
  assert.equal(session.shown.length, 6);
  for (const { prompt, right, given, guess } of session.shown) {
    assert.ok(RIGHT.reverse(prompt.join(""), right.join("")));
    assert.ok(guess === null && !given.some(Boolean));
  }
});

// ---- a run
const told = (step, losses, more = {}) => ({
  step,
  losses: Float32Array.from(losses),
  ...{ norm: 1, rate: 0.1, gradients: null, heldOut: null, look: null, sample: null, parameters: 9, milliseconds: 1 },
  ...more,
});

test("a long run is kept in few points, and the loss that is shown is the mean of the last steps", () => {
  const run = new PlaygroundRun(firstSettings(), "");
  for (let step = 7; step <= 7000; step += 7)
    run.take(
      told(
        step,
        [1, 2, 3, 4, 5, 6, 7].map((i) => step + i),
      ),
    );
  assert.ok(run.points.length <= 240 && run.points.length > 100);
  assert.equal(
    run.points.reduce((sum, { count }) => sum + count, 0),
    7000,
  );
  assert.equal(run.points.at(-1).step, 7000);
  const all = Array.from({ length: 7000 }, (_, i) => 7 * Math.floor(i / 7) + 8 + (i % 7)),
    mean = all.slice(-20).reduce((a, b) => a + b) / 20;
  assert.ok(Math.abs(run.loss - mean) < 1e-3);
});

test("a run that exploded forgets what was after the step to which it goes back", () => {
  const run = new PlaygroundRun(firstSettings(), ""),
    scores = { loss: 3, tokens: 0.5, sequences: 0, longer: [] };
  run.take(told(10, Array(10).fill(2), { heldOut: scores }));
  run.take(told(20, Array(10).fill(9), { heldOut: scores }));
  run.goBack(10, { step: 25, loss: Number.NaN, norm: 1, rate: 1, why: "it did" });
  assert.deepEqual([run.step, run.loss, run.held.length, run.points.length, run.heldOut], [10, 2, 1, 10, null]);
});

test("how settings differ, in words", () => {
  const first = firstSettings(),
    others = [first, { ...first, ffn: false, clip: 1 }, { ...first, residual: false, task: "add" }];
  assert.deepEqual(playgroundDifferences(others), [
    "reverse, residual, feed-forward, no clipping",
    "reverse, residual, not feed-forward, clip 1",
    "add, no residual, feed-forward, no clipping",
  ]);
});
