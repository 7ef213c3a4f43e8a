// A model with all that learns it: weights that begin by a seed, gradients, an optimizer, and a way back.
import { randomNumbers } from "./filters.js";
import { bestTokens, crossEntropy, IGNORE_INDEX } from "./losses.js";
import { clipGradients, OPTIMIZERS, squaredNorm, warmedUp } from "./optimizers.js";
import { lasting, Tensor, tidy } from "./tensor.js";
import { TinyTransformer, tinyWeights } from "./tiny.js";

/**
 * @typedef {import("./optimizers.js").Learned} Learned
 * @typedef {import("./tensor.js").Numbers} Numbers
 * @typedef {import("./tiny.js").TinyConfig} TinyConfig
 * @typedef {{ name?: string, rate?: number, warmup?: number, clip?: number | null, [of_its_own: string]: any }} Optimizer
 * @typedef {{ tokens: number[] | Int32Array, targets: number[] | Int32Array, batch: number }} Batch  one after the other
 */

// Numbers of a normal distribution (Box and Muller 1958), from random ones from 0 to 1.
/** @param {() => number} random */
export function normalNumbers(random) {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function known(name = "adamw") {
  if (!Object.hasOwn(OPTIMIZERS, name)) throw new Error(`there is no optimizer ${name}`);
}

export class Learner {
  // model: the config of a `TinyTransformer`. optimizer: {name, rate, warmup, clip, ...of `OPTIMIZERS`}; without `clip`,
  // gradients stay as they are.
  /** @param {{ model: TinyConfig, optimizer?: Optimizer, seed?: number }} options */
  constructor({ model, optimizer = {}, seed = 0 }) {
    known(optimizer.name); // before anything is made that stays
    const normal = normalNumbers(randomNumbers(seed));
    this.weights = new Map(
      tinyWeights(model).map(([name, shape, begin]) => {
        const tensor = /** @type {Learned} */ (lasting(new Tensor(...shape)));
        tensor.gradient = lasting(Tensor.zeros(...shape));
        if (typeof begin === "number") tensor.data.fill(begin);
        else tensor.data.set(Float32Array.from(tensor.data, () => begin.std * normal()));
        return [name, tensor];
      }),
    );
    this.model = new TinyTransformer((name) => this.weights.get(name) ?? null, model);
    this.all = [...this.weights.values()];
    this.steps = 0;
    /** @type {{ tensors: Tensor[], counts: number[] } | null} */
    this.saved = null;
    this.rate = this.warmup = 0;
    /** @type {number | null} */
    this.clip = null;
    this.kind = ""; // of the optimizer, which has no weights until it is set
    this.optimizer = OPTIMIZERS.sgd([], {});
    this.setOptimizer(optimizer);
  }

  // Another optimizer starts without memory; another rate, warm-up or clipping of the same one goes on with it.
  /** @param {Optimizer} options */
  setOptimizer(options) {
    const { name = "adamw", rate = 3e-3, warmup = 0, clip = null, ...more } = options;
    const kind = JSON.stringify([name, more]);
    if (kind !== this.kind) {
      known(name);
      this.#forget();
      for (const tensor of this.optimizer.state.flat()) tensor.free();
      this.optimizer = OPTIMIZERS[name](this.all, more);
      this.kind = kind;
    }
    Object.assign(this, { rate, warmup, clip });
  }

  // One step on a batch {tokens, targets, batch}: sequences of one length one after the other. Returns {loss, norm,
  // rate}: the loss before the step, and the norm of all gradients before clipping. Where either is no number, nothing
  // is learned. Where the loss is not above `saveBelow`, the weights that have it are saved for `goBack`.
  /** @param {Batch} batch */
  step(batch, { saveBelow = Number.NEGATIVE_INFINITY } = {}) {
    const { loss } = this.gradients(batch),
      norm = Math.sqrt(this.all.reduce((sum, tensor) => sum + squaredNorm(tensor), 0)),
      rate = warmedUp(this.rate, this.steps, this.warmup);
    if (!Number.isFinite(loss) || !Number.isFinite(norm)) return { loss, norm, rate };
    if (loss <= saveBelow) this.save();
    if (this.clip !== null) clipGradients(this.all, norm, this.clip);
    this.optimizer.step(rate);
    this.steps++;
    return { loss, norm, rate };
  }

  // The loss of a batch, whose gradients are then those of all weights.
  /** @param {Batch} batch */
  gradients({ tokens, targets, batch }) {
    return tidy(() => {
      const tape = /** @type {any[]} */ ([]);
      for (const { gradient } of this.all) gradient.data.fill(0);
      const scores = this.model.forward(tokens, { batch, tape }),
        result = crossEntropy(scores, targets);
      this.model.backward(scores, tape);
      return result;
    });
  }

  // How well a batch is guessed: {loss, tokens, sequences}, the shares of tokens that are right and of sequences all of
  // whose tokens are; `best`: the guesses.
  /** @param {Batch} batch */
  score({ tokens, targets, batch }) {
    return tidy(() => {
      const scores = this.model.forward(tokens, { batch }),
        best = bestTokens(scores),
        T = tokens.length / batch;
      let right = 0,
        whole = 0;
      for (let b = 0; b < batch; b++) {
        let wrong = 0;
        for (let i = b * T; i < (b + 1) * T; i++)
          if (targets[i] !== IGNORE_INDEX) {
            if (best[i] === targets[i]) right++;
            else wrong++;
          }
        if (!wrong) whole++;
      }
      const { loss, count } = crossEntropy(scores, targets);
      return { loss, tokens: right / count, sequences: whole / batch, best };
    });
  }

  // Norms of the gradients of the last step by part: {embedding, blocks: [...], head}.
  gradientNorms() {
    const sums = { embedding: 0, head: 0 },
      blocks = this.model.blks.map(() => 0);
    for (const [name, tensor] of this.weights) {
      const block = /^blks\.(\d+)/.exec(name)?.[1];
      if (block !== undefined) blocks[Number(block)] += squaredNorm(tensor);
      else sums[name.includes("embedding") ? "embedding" : "head"] += squaredNorm(tensor);
    }
    return { embedding: Math.sqrt(sums.embedding), blocks: blocks.map(Math.sqrt), head: Math.sqrt(sums.head) };
  }

  get parameters() {
    return this.all.reduce((sum, { length }) => sum + length, 0);
  }

  // All weights, or their gradients: {name: {shape, data}}, copies.
  read(which = (/** @type {Learned} */ tensor) => /** @type {Numbers} */ (tensor)) {
    return Object.fromEntries(
      Array.from(this.weights, ([name, tensor]) => [name, { shape: tensor.shape, data: which(tensor).data.slice() }]),
    );
  }
  // Puts numbers in place of weights.
  /** @param {Record<string, ArrayLike<number>>} values */
  write(values) {
    for (const [name, numbers] of Object.entries(values)) {
      const tensor = this.weights.get(name);
      if (!tensor || tensor.length !== numbers.length) throw new Error(`${name} does not fit into this model`);
      tensor.data.set(numbers);
    }
    this.#forget();
  }

  // Keeps everything as it is, for `goBack`.
  save() {
    const now = [...this.all, ...this.optimizer.state.flat()],
      { tensors } = this.saved ?? { tensors: lasting(now.map(({ shape }) => new Tensor(...shape))) };
    now.forEach((tensor, i) => {
      tensors[i].data.set(tensor.data);
    });
    this.saved = { tensors, counts: [this.steps, this.optimizer.steps] };
  }
  // To what was saved; says whether there was something.
  goBack() {
    if (!this.saved) return false;
    const { tensors, counts } = this.saved;
    [...this.all, ...this.optimizer.state.flat()].forEach((tensor, i) => {
      tensor.data.set(tensors[i].data);
    });
    [this.steps, this.optimizer.steps] = counts;
    return true;
  }
  #forget() {
    for (const tensor of this.saved?.tensors ?? []) tensor.free();
    this.saved = null;
  }

  free() {
    this.#forget();
    for (const tensor of this.optimizer.state.flat()) tensor.free();
    for (const tensor of this.all) {
      tensor.gradient.free();
      tensor.free();
    }
  }
}
