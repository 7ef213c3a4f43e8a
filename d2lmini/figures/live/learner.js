// A model with all that learns it: weights that begin by a seed, gradients, an optimiser, and a way back.
import { randomNumbers } from "./filters.js";
import { bestTokens, crossEntropy, IGNORE_INDEX } from "./losses.js";
import { clipGradients, OPTIMISERS, squaredNorm, warmedUp } from "./optimizers.js";
import { lasting, Tensor, tidy } from "./tensor.js";
import { TinyTransformer, tinyWeights } from "./tiny.js";

// Numbers of a normal distribution (Box and Muller 1958), from random ones from 0 to 1.
export function normalNumbers(random) {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function known(name = "adamw") {
  if (!Object.hasOwn(OPTIMISERS, name)) throw new Error(`there is no optimiser ${name}`);
}

export class Learner {
  // model: the config of a `TinyTransformer`. optimiser: {name, rate, warmup, clip, ...of `OPTIMISERS`}; without `clip`,
  // gradients stay as they are.
  constructor({ model, optimiser = {}, seed = 0 }) {
    known(optimiser.name); // before anything is made that stays
    const normal = normalNumbers(randomNumbers(seed));
    this.weights = new Map(
      tinyWeights(model).map(([name, shape, begin]) => {
        const tensor = lasting(new Tensor(...shape));
        tensor.gradient = lasting(Tensor.zeros(...shape));
        if (begin.std) tensor.data.set(Float32Array.from(tensor.data, () => begin.std * normal()));
        else tensor.data.fill(begin);
        return [name, tensor];
      }),
    );
    this.model = new TinyTransformer((name) => this.weights.get(name) ?? null, model);
    this.all = [...this.weights.values()];
    this.steps = 0;
    this.saved = null;
    this.setOptimiser(optimiser);
  }

  // Another optimiser starts without memory; another rate, warm-up or clipping of the same one goes on with it.
  setOptimiser(options) {
    const { name = "adamw", rate = 3e-3, warmup = 0, clip = null, ...more } = options;
    const kind = JSON.stringify([name, more]);
    if (kind !== this.kind) {
      known(name);
      this.#forget();
      for (const tensor of this.optimiser?.state.flat() ?? []) tensor.free();
      this.optimiser = OPTIMISERS[name](this.all, more);
      this.kind = kind;
    }
    Object.assign(this, { rate, warmup, clip });
  }

  // One step on a batch {tokens, targets, batch}: sequences of one length one after the other. Returns {loss, norm,
  // rate}: the loss before the step, and the norm of all gradients before clipping. Where either is no number, nothing
  // is learned. Where the loss is not above `saveBelow`, the weights that have it are saved for `goBack`.
  step(batch, { saveBelow = Number.NEGATIVE_INFINITY } = {}) {
    const { loss } = this.gradients(batch),
      norm = Math.sqrt(this.all.reduce((sum, tensor) => sum + squaredNorm(tensor), 0)),
      rate = warmedUp(this.rate, this.steps, this.warmup);
    if (!Number.isFinite(loss) || !Number.isFinite(norm)) return { loss, norm, rate };
    if (loss <= saveBelow) this.save();
    if (this.clip !== null) clipGradients(this.all, norm, this.clip);
    this.optimiser.step(rate);
    this.steps++;
    return { loss, norm, rate };
  }

  // The loss of a batch, whose gradients are then those of all weights.
  gradients({ tokens, targets, batch }) {
    return tidy(() => {
      const tape = [];
      for (const { gradient } of this.all) gradient.data.fill(0);
      const scores = this.model.forward(tokens, { batch, tape }),
        result = crossEntropy(scores, targets);
      this.model.backward(scores, tape);
      return result;
    });
  }

  // How well a batch is guessed: {loss, tokens, sequences}, the shares of tokens that are right and of sequences all of
  // whose tokens are; `best`: the guesses.
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
      if (block !== undefined) blocks[block] += squaredNorm(tensor);
      else sums[name.includes("embedding") ? "embedding" : "head"] += squaredNorm(tensor);
    }
    return { embedding: Math.sqrt(sums.embedding), blocks: blocks.map(Math.sqrt), head: Math.sqrt(sums.head) };
  }

  get parameters() {
    return this.all.reduce((sum, { length }) => sum + length, 0);
  }

  // All weights, or their gradients: {name: {shape, data}}, copies.
  read(which = (tensor) => tensor) {
    return Object.fromEntries(
      Array.from(this.weights, ([name, tensor]) => [name, { shape: tensor.shape, data: which(tensor).data.slice() }]),
    );
  }
  // Puts numbers in place of weights: {name: numbers}.
  write(values) {
    for (const [name, numbers] of Object.entries(values)) {
      const tensor = this.weights.get(name);
      if (tensor?.length !== numbers.length) throw new Error(`${name} does not fit into this model`);
      tensor.data.set(numbers);
    }
    this.#forget();
  }

  // Keeps everything as it is, for `goBack`.
  save() {
    const now = [...this.all, ...this.optimiser.state.flat()];
    this.saved ??= lasting({ tensors: now.map(({ shape }) => new Tensor(...shape)) });
    now.forEach((tensor, i) => {
      this.saved.tensors[i].data.set(tensor.data);
    });
    this.saved.counts = [this.steps, this.optimiser.steps];
  }
  // To what was saved; says whether there was something.
  goBack() {
    if (!this.saved) return false;
    [...this.all, ...this.optimiser.state.flat()].forEach((tensor, i) => {
      tensor.data.set(this.saved.tensors[i].data);
    });
    [this.steps, this.optimiser.steps] = this.saved.counts;
    return true;
  }
  #forget() {
    for (const tensor of this.saved?.tensors ?? []) tensor.free();
    this.saved = null;
  }

  free() {
    this.#forget();
    for (const tensor of this.optimiser.state.flat()) tensor.free();
    for (const tensor of this.all) {
      tensor.gradient.free();
      tensor.free();
    }
  }
}
