// Multi-head attention: W_q, W_k, W_v, W_o, and a cache of keys and values. Where W_k and W_v have fewer rows than W_q,
// heads of queries share keys and values in groups, neighbours first.
import { softmaxRow } from "./activations.js";
import { Linear, RMSNorm, residual, under } from "./layers.js";
import { lasting, multiply, multiplyFirstTransposed, multiplyTransposed, part, Tensor } from "./tensor.js";

/**
 * @typedef {import("./layers.js").Tape} Tape
 * @typedef {import("./layers.js").Weights} Weights
 * @typedef {import("./position.js").RotaryEmbedding} RotaryEmbedding
 * @typedef {import("./tensor.js").Part} Part
 * @typedef {(weights: Tensor) => void} Seen
 * @typedef {(block: number, weights: Tensor, which?: "own" | "cross") => void} SeenBy  the same of a model
 * @typedef {(ArrayLike<number> | null)[] | null} HeadMasks  by block
 * @typedef {{ tape: Tape, batch?: number, causal?: boolean, rotary?: RotaryEmbedding | null, slopes?: number[] | null,
 *   seen?: Seen | null }} Learning
 * @typedef {{ fixed?: boolean, causal?: boolean, first?: number, end?: number, rotary?: RotaryEmbedding | null,
 *   positions?: number[] | null, head_mask?: ArrayLike<number> | null, seen?: Seen | null }} Attending
 */

// Keys and values that were projected, with room for more. Unlike Python's it is changed in place: `first` takes back.
export class KeyValueCache {
  /** @param {number} capacity @param {number} h */
  constructor(capacity, h) {
    this.length = 0;
    this.capacity = capacity;
    this.keys = lasting(new Tensor(capacity, h));
    this.values = lasting(new Tensor(capacity, h));
  }
  /** @param {number} length */
  first(length) {
    this.length = Math.min(this.length, length);
  }
  // So many more places, of which nobody will ask for keys or values.
  /** @param {number} number */
  skip(number) {
    this.length += number;
  }
  copy() {
    const [capacity, h] = this.keys.shape,
      other = new KeyValueCache(capacity, h);
    other.length = this.length;
    other.keys.data.set(this.keys.data.subarray(0, this.length * h));
    other.values.data.set(this.values.data.subarray(0, this.length * h));
    return other;
  }
  free() {
    this.keys.free();
    this.values.free();
  }
}

export class MultiHeadAttention {
  /** @param {Weights} weights @param {number} num_heads */
  constructor(weights, num_heads, { qk_norm = false } = {}) {
    this.num_heads = num_heads;
    this.W_q = new Linear(under(weights, "W_q"));
    this.W_k = new Linear(under(weights, "W_k"));
    this.W_v = new Linear(under(weights, "W_v"));
    this.W_o = new Linear(under(weights, "W_o"));
    this.qk_norm = qk_norm ? new RMSNorm() : null;
    this.h = this.W_k.weight.shape[0]; // numbers of a position in the cache
    this.d = this.W_q.weight.shape[0] / num_heads;
    this.group = (num_heads * this.d) / this.h; // so many heads of queries share keys and values
  }

  // Of queries alone: self-attention, X (T, h) to (T, h). See `extend` for the options, and `learn`, which is for a tape.
  /** @param {Tensor} X @param {Attending | Learning} options @returns {Tensor} */
  forward(X, options = {}) {
    if ("tape" in options && options.tape) return this.learn(X, options);
    const cache = new KeyValueCache(X.shape[0], this.h);
    try {
      return this.extend(X, cache, options);
    } finally {
      cache.free();
    }
  }

  // As `forward`, of a batch of sequences without padding, which stand below each other: X (B * T, h).
  //   slopes: ALiBi's, by head. seen: is called with the weights, a tensor (B * H, T, T).
  /** @param {Tensor} X @param {Learning} options */
  learn(X, { tape, batch = 1, causal = false, rotary = null, slopes = null, seen = null }) {
    if (this.qk_norm) throw new Error("attention whose queries and keys are normed cannot learn here");
    if (this.group !== 1) throw new Error("attention whose heads share keys and values cannot learn here");
    const T = X.shape[0] / batch,
      { d } = this;
    const [Q, K, V] = [this.W_q, this.W_k, this.W_v].map((linear) => linear.forward(X, tape)); // (B * T, h)
    if (rotary) for (const heads of [Q, K]) turnRows(rotary, heads, T);
    scaleBy(Q, 1 / Math.sqrt(d));
    const weights = new Tensor(batch * this.num_heads, T, T),
      Y = new Tensor(batch * T, this.h);
    this.#each(batch, T, (at, row) => multiplyTransposed(at(Q), at(K), part(weights, row), T, d, T));
    softmaxSquares(weights, causal, slopes);
    this.#each(batch, T, (at, row) => multiply(part(weights, row), at(V), at(Y), T, T, d));
    seen?.(weights);
    tape.push({ Q, K, V, weights, batch, rotary });
    return this.W_o.forward(Y, tape);
  }

  /** @param {Tensor} dOutput @param {Tape} tape */
  backward(dOutput, tape) {
    const dY = this.W_o.backward(dOutput, tape),
      { Q, K, V, weights, batch, rotary } = tape.pop();
    const T = Q.shape[0] / batch,
      { d } = this;
    const [dQ, dK, dV] = [Q, K, V].map(({ shape }) => new Tensor(...shape)),
      scores = new Tensor(...weights.shape);
    this.#each(batch, T, (at, row) => {
      multiplyTransposed(at(dY), at(V), part(scores, row), T, d, T);
      multiplyFirstTransposed(part(weights, row), at(dY), at(dV), T, T, d);
    });
    softmaxBackward(scores, weights);
    this.#each(batch, T, (at, row) => {
      multiply(part(scores, row), at(K), at(dQ), T, T, d);
      multiplyFirstTransposed(part(scores, row), at(Q), at(dK), T, T, d); // Q is scaled
    });
    scaleBy(dQ, 1 / Math.sqrt(d));
    if (rotary) for (const heads of [dQ, dK]) turnRows(rotary, heads, T, true);
    const dX = this.W_v.backward(dV, tape);
    residual(this.W_k.backward(dK, tape), dX);
    return residual(this.W_q.backward(dQ, tape), dX);
  }

  // Each head of each sequence: `at` is its part of a tensor (B * T, h), `row` where its own (T, T) begin.
  /** @param {number} batch @param {number} T @param {(at: (tensor: Tensor) => Part, row: number) => void} work */
  #each(batch, T, work) {
    const { d } = this;
    for (let b = 0; b < batch; b++)
      for (let head = 0; head < this.num_heads; head++)
        work((tensor) => part(tensor, b * T, head * d), (b * this.num_heads + head) * T);
  }

  // Projects keys and values that follow what is in a cache.
  /** @param {Tensor} memory @param {KeyValueCache} cache @param {Attending} options */
  project(memory, cache, { rotary = null, positions = null } = {}) {
    const length = memory.shape[0],
      start = cache.length;
    if (start + length > cache.capacity)
      throw new RangeError(`${start + length} tokens, but there is room for ${cache.capacity}`);
    this.W_k.into(memory, part(cache.keys, start));
    this.W_v.into(memory, part(cache.values, start));
    cache.length += length;
    for (let i = start; i < cache.length; i++) {
      const row = cache.keys.row(i);
      this.qk_norm?.rows(row, this.d);
      rotary?.turn(row, positions ? positions[i - start] : i);
    }
    return cache;
  }

  // Attends from X (T, h), whose keys and values it appends to the cache, unless that is `fixed` (cross-attention).
  //   causal: no query sees what comes after it. first, end: keys before and from there on are padding.
  //   rotary, positions: turns queries and keys by their positions, by default their places in the cache.
  //   head_mask: a factor for what each head brings. seen: is called with the weights, a tensor (H, T, S).
  /** @param {Tensor} X @param {KeyValueCache} cache @param {Attending} options */
  extend(X, cache, options = {}) {
    const { fixed = false, causal = false, first = 0, end = Number.POSITIVE_INFINITY } = options;
    const { rotary = null, positions = null, head_mask = null, seen = null } = options;
    const T = X.shape[0],
      past = fixed ? 0 : cache.length,
      { d } = this;
    const Q = this.W_q.forward(X); // (T, H * d)
    for (let i = 0; i < T; i++) {
      this.qk_norm?.rows(Q.row(i), d);
      rotary?.turn(Q.row(i), positions ? positions[i] : past + i);
    }
    if (!fixed) this.project(X, cache, { rotary, positions });
    const S = cache.length,
      weights = new Tensor(this.num_heads, T, S),
      Y = new Tensor(...Q.shape);
    for (let i = 0, x = Q.data; i < x.length; i++) x[i] /= Math.sqrt(d);
    for (let head = 0; head < this.num_heads; head++) {
      const scores = part(weights, head * T),
        own = Math.floor(head / this.group) * d;
      multiplyTransposed(part(Q, 0, head * d), part(cache.keys, 0, own), scores, T, d, S);
      for (let i = 0; i < T; i++) {
        const last = Math.min(S, end, causal ? past + i + 1 : S);
        const row = weights.data.subarray((head * T + i) * S, (head * T + i + 1) * S);
        if (last > first) softmaxRow(row, first, last);
        else row.fill(0); // it may look at nothing, and gets nothing
      }
      multiply(scores, part(cache.values, 0, own), part(Y, 0, head * d), T, S, d);
    }
    seen?.(weights);
    if (head_mask) this.#factors(Y, head_mask);
    return this.W_o.forward(Y);
  }

  /** @param {Tensor} Y @param {ArrayLike<number>} head_mask */
  #factors(Y, head_mask) {
    const data = Y.data,
      size = Y.shape[1];
    for (let i = 0; i < data.length; i++) data[i] *= head_mask[Math.floor((i % size) / this.d)];
  }
}

/** @param {RotaryEmbedding} rotary @param {Tensor} heads @param {number} T */
function turnRows(rotary, heads, T, back = false) {
  for (let i = 0; i < heads.shape[0]; i++) rotary.turn(heads.row(i), i % T, back);
}

/** @param {Tensor} X @param {number} factor */
function scaleBy(X, factor) {
  const data = X.data;
  for (let i = 0; i < data.length; i++) data[i] *= factor;
}

// Scores (B * H, T, T) to weights, in place.
/** @param {Tensor} scores @param {boolean} causal @param {number[] | null} slopes */
function softmaxSquares(scores, causal, slopes) {
  const data = scores.data,
    T = scores.shape[2];
  for (let start = 0, row = 0; start < data.length; start += T, row++) {
    const i = row % T,
      end = start + (causal ? i + 1 : T);
    if (slopes) {
      const slope = slopes[Math.floor(row / T) % slopes.length];
      for (let j = 0; j < i; j++) data[start + j] -= slope * (i - j);
    }
    let top = data[start],
      total = 0;
    for (let j = start + 1; j < end; j++) if (data[j] > top) top = data[j];
    for (let j = start; j < end; j++) {
      const power = Math.exp(data[j] - top);
      data[j] = power;
      total += power;
    }
    const factor = 1 / total;
    for (let j = start; j < end; j++) data[j] *= factor;
    for (let j = end; j < start + T; j++) data[j] = 0;
  }
}

// The gradient by weights to that by scores, in place.
/** @param {Tensor} gradient @param {Tensor} weights */
function softmaxBackward(gradient, weights) {
  const d = gradient.data,
    p = weights.data,
    T = weights.shape[2];
  for (let start = 0; start < d.length; start += T) {
    let mean = 0;
    for (let j = start; j < start + T; j++) mean += p[j] * d[j];
    for (let j = start; j < start + T; j++) d[j] = p[j] * (d[j] - mean);
  }
}
