// Learning as tasks of the worker. Learners stay from one to the next, by name: so a reader can pause, go on by one step,
// and change the rate in between.
import { drawn, filtered, randomNumbers } from "./filters.js";
import { Learner } from "./learner.js";
import { PlaygroundTask } from "./playground_tasks.js";
import { tidy } from "./tensor.js";

/**
 * @typedef {import("./learner.js").Batch} Batch
 * @typedef {ReturnType<Learner["score"]>} Score
 * @typedef {import("./tensor.js").Numbers} Numbers
 * @typedef {import("./tiny.js").TinyConfig} TinyConfig
 * @typedef {import("./playground_tasks.js").TaskOptions & { name: string, examples?: number }} TaskSaid
 * @typedef {TaskSaid & { batch?: number, batches?: Batch[], heldOut?: Batch }} Data
 * @typedef {{ key: string, learner: Learner, task: PlaygroundTask | null, random: () => number, heldOut: Batch | null,
 *   longer: { size: number, batch: Batch }[], first: number | null, next: number, norm?: number }} Learning
 * @typedef {{ learner?: string, model: Omit<TinyConfig, "vocab_size" | "max_len"> & Partial<TinyConfig>,
 *   optimizer: import("./learner.js").Optimizer, data: Data, seed?: number, longer?: number[], reset?: boolean }} What
 * @typedef {{ step: number, loss: number, norm: number, rate: number, why: string }} Exploded
 * @typedef {{ tokens: number[], length: number, every: number, temperature?: number }} Sample
 */

/** @type {Map<string, Learning>} */
const learners = new Map(); // by name
const SLICE_TIME = 40; // milliseconds between two answers
const SAVE_EVERY = 10; // steps: it copies all weights. Nothing but times depends on how long a slice is

const now = () => performance.now();

/** @param {string} name */
function found(name) {
  const one = learners.get(name);
  if (!one) throw new Error("nothing has been learned yet");
  return one;
}

/** @param {Pick<TinyConfig, "num_hiddens" | "num_heads" | "positions">} model */
function checkModel({ num_hiddens: h, num_heads, positions }) {
  if (!(h >= 1) || h % num_heads) throw new Error(`${h} features cannot be cut into ${num_heads} heads`);
  if (positions === "rotary" && (h / num_heads) % 2)
    throw new Error(`rotary positions turn pairs: ${h / num_heads} features of a head are not even`);
}

/** @param {What} what @returns {Learning} */
function made({ learner: name = "playground", model, optimizer, seed = 0, data, longer = [], reset = false }) {
  const { batch: _, ...taskOptions } = data;
  const key = JSON.stringify([model, seed, taskOptions, longer]);
  const old = learners.get(name);
  if (old && !reset && old.key === key) {
    old.learner.setOptimizer(optimizer);
    return old;
  }
  checkModel(model);
  const task = data.batches ? null : new PlaygroundTask(taskOptions),
    { causal } = model;
  const config = /** @type {TinyConfig} */ ({ ...model });
  let heldOut = data.heldOut ?? null,
    further = /** @type {Learning["longer"]} */ ([]);
  if (task) {
    config.vocab_size ??= task.tokens.length;
    config.max_len ??= Math.max(...[task.size, ...longer].map((size) => task.lengthOf(size, causal)));
    const held = (/** @type {number} */ size) =>
      task.batch(randomNumbers(seed + 2), 64, { causal, size, heldOut: true });
    heldOut = held(task.size);
    further = longer.map((size) => ({ size, batch: held(size) }));
  }
  const learner = new Learner({ model: config, optimizer, seed }),
    one = { key, learner, task, heldOut, longer: further, random: randomNumbers(seed + 1), first: null, next: 0 };
  old?.learner.free();
  learners.set(name, one);
  return one;
}

/** @param {Learning} one @param {Data} data @param {boolean} causal @returns {Batch} */
function batchOf(one, data, causal) {
  if (data.batches) return data.batches[one.next++ % data.batches.length];
  return /** @type {PlaygroundTask} */ (one.task).batch(one.random, data.batch ?? 16, { causal });
}

/** @param {Learning} one */
function scored(one) {
  if (!one.heldOut) return null;
  const told = (/** @type {Score} */ { loss, tokens, sequences }) => ({ loss, tokens, sequences });
  return {
    ...told(one.learner.score(one.heldOut)),
    longer: one.longer.map(({ size, batch }) => ({ size, ...told(one.learner.score(batch)) })),
  };
}

// Learns: {learner, model, optimizer, seed, data, longer, reset} say what, {steps, most, every, look, sample} how.
//   learner: a name. It is made anew where `reset` says so, or model, seed, data or longer are others than before.
//   model: the config of a `TinyTransformer`; vocab_size and max_len follow from the task where they are missing.
//   optimizer: as `Learner`'s.
//   data: {name, batch, ...} of a `PlaygroundTask`, or {batches, heldOut} of what `Learner.step` takes.
//   longer: sizes of the task at which held-out examples are scored too.
//   steps: how many; null: until it is stopped. most: steps between two answers at most.
//   every: steps between two scores of the held-out examples. look: {tokens}, shown with each answer, as `lookTask`'s.
//   sample: {tokens, length, every, temperature}: a text that is written every so many steps.
// Yields {step, losses, norm, rate, gradients, heldOut, look, sample, parameters, milliseconds}; heldOut and sample
// are null where they were not asked for in this slice. Returns {step}, or where the loss is no number any more
// {step, exploded: {step, loss, norm, rate, why}}: the learner is then where the loss was last below that of the start.
/**
 * @param {unknown} _
 * @param {What & { steps?: number | null, most?: number, every?: number, look?: { tokens: number[] } | null,
 *   sample?: Sample | null }} options
 */
export function* trainTask(_, options) {
  const { steps = null, most = Number.POSITIVE_INFINITY, every = 50, look = null, sample = null } = options;
  const one = made(options),
    { learner } = one,
    { causal } = learner.model.config,
    end = steps === null ? Number.POSITIVE_INFINITY : learner.steps + steps;
  if (!learner.saved) learner.save();
  let heldOut = learner.steps === 0 || steps === 0 ? scored(one) : null;
  let norm = one.norm ?? 0; // of the step before
  while (learner.steps < end || heldOut) {
    const start = now(),
      losses = /** @type {number[]} */ ([]);
    let text = /** @type {number[] | null} */ (null),
      rate = /** @type {number | null} */ (null),
      exploded = /** @type {Exploded | null} */ (null);
    while (learner.steps < end && losses.length < most) {
      const saveBelow = learner.steps % SAVE_EVERY ? undefined : (one.first ?? undefined);
      const told = learner.step(batchOf(one, options.data, causal), { saveBelow });
      one.first ??= told.loss;
      if (!Number.isFinite(told.loss) || !Number.isFinite(told.norm)) {
        const why = explained(learner.steps, told, norm);
        exploded = { step: learner.steps, ...told, why };
        break;
      }
      ({ norm, rate } = told);
      one.norm = norm;
      losses.push(told.loss);
      if (learner.steps % every === 0) heldOut = scored(one);
      if (sample && learner.steps % sample.every === 0) {
        text = written(learner.model, sample, randomNumbers(learner.steps));
        break;
      }
      // one step more, if it fits
      if ((now() - start) * (1 + 1 / losses.length) > SLICE_TIME) break;
    }
    const gradients = losses.length && !exploded ? learner.gradientNorms() : null;
    yield {
      step: learner.steps,
      losses: Float32Array.from(losses),
      norm,
      rate,
      gradients,
      heldOut,
      look: look && shownTo(one, look),
      sample: text,
      parameters: learner.parameters,
      milliseconds: now() - start,
    };
    heldOut = null;
    if (exploded) {
      learner.goBack();
      return { step: learner.steps, exploded };
    }
  }
  return { step: learner.steps };
}

/** @param {number} step @param {{ loss: number, rate: number }} told @param {number} norm */
function explained(step, { loss, rate }, norm) {
  const what = Number.isFinite(loss) ? "the gradients are" : "the loss is";
  const size = norm.toPrecision(2),
    by = rate.toPrecision(2);
  return `${what} no number any more at step ${step}: the gradients had a norm of ${size}, the rate is ${by}`;
}

// What follows each token, and where each head looks.
/** @param {Learning} one @param {{ tokens: number[] }} look */
function shownTo({ learner }, { tokens }) {
  return tidy(() => {
    const weights = /** @type {({ block: number } & Numbers)[]} */ ([]);
    /** @type {import("./multi_head.js").SeenBy} */
    const seen = (block, { shape, data }) => weights.push({ block, shape: [...shape], data: data.slice() });
    const scores = learner.model.forward(tokens, { seen }),
      probabilities = new Float32Array(scores.length);
    for (let i = 0; i < tokens.length; i++) {
      const V = scores.shape[1];
      probabilities.set(filtered(scores.row(i)), i * V);
    }
    return { tokens: [...tokens], weights, probabilities };
  });
}

// Goes on from tokens, drawing one after the other; the model sees the last ones, as many as it has learned positions.
/** @param {Learner["model"]} model @param {Sample} sample @param {() => number} random */
function written(model, { tokens, length, temperature = 0.8 }, random) {
  const all = [...tokens];
  for (let i = 0; i < length; i++)
    tidy(() => {
      const read = all.slice(-model.config.max_len),
        scores = model.forward(read);
      all.push(drawn(filtered(scores.row(read.length - 1), { temperature }), random));
    });
  return all.slice(tokens.length);
}

/** @param {unknown} _ @param {{ learner?: string, tokens?: number[], text?: string }} options */
// biome-ignore lint/correctness/useYield: a task is a generator, and this one has no steps
export function* lookTask(_, { learner = "playground", tokens, text = "" }) {
  const one = found(learner);
  return shownTo(one, { tokens: tokens ?? one.task?.encode(text) ?? [] });
}

// What a task of the playground looks like: {tokens, size, most, length, examples}. An example is {prompt, answer, tokens,
// targets}, none of them in training.
/** @param {unknown} _ @param {{ data: Data, causal?: boolean, number?: number, seed?: number, size?: number }} options */
export function* describeTask(_, { data: { batch, ...options }, causal = true, number = 8, seed = 2, size }) {
  const task = new PlaygroundTask(options),
    random = randomNumbers(seed);
  const examples = Array.from({ length: number }, () => {
    const example = task.example(random, { size, heldOut: true }),
      { tokens, targets } = task.lay([example], causal);
    return { ...example, tokens: [...tokens], targets: [...targets] };
  });
  const { tokens, most } = task;
  return { tokens, size: task.size, most, length: task.lengthOf(size, causal), examples };
}

// The weights of a learner, {config, steps, weights: {name: {shape, data}}}, after those of `write`, {name: numbers}, were
// put in their place.
/** @param {unknown} _ @param {{ learner?: string, write?: Record<string, number[]> | null }} options */
// biome-ignore lint/correctness/useYield: as above
export function* weightsTask(_, { learner = "playground", write = null }) {
  const one = found(learner);
  if (write) one.learner.write(write);
  return { config: one.learner.model.config, steps: one.learner.steps, weights: one.learner.read() };
}

// Forgets a learner.
/** @param {unknown} _ @param {{ learner?: string }} options */
// biome-ignore lint/correctness/useYield: as above
export function* forgetTask(_, { learner = "playground" }) {
  learners.get(learner)?.learner.free();
  learners.delete(learner);
  return null;
}
