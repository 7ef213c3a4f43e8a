// Multi-head attention: W_q, W_k, W_v, W_o, and a cache of keys and values.
import { softmaxRow } from "./activations.js";
import { Linear, RMSNorm, under } from "./layers.js";
import { lasting, multiply, multiplyTransposed, part, Tensor } from "./tensor.js";

// Keys and values that were projected, with room for more. Unlike Python's it is changed in place: `first` takes back.
export class KeyValueCache {
  constructor(capacity, h) {
    this.length = 0;
    this.capacity = capacity;
    [this.keys, this.values] = lasting([new Tensor(capacity, h), new Tensor(capacity, h)]);
  }
  first(length) {
    this.length = Math.min(this.length, length);
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
  constructor(weights, num_heads, { qk_norm = false } = {}) {
    this.num_heads = num_heads;
    this.W_q = new Linear(under(weights, "W_q"));
    this.W_k = new Linear(under(weights, "W_k"));
    this.W_v = new Linear(under(weights, "W_v"));
    this.W_o = new Linear(under(weights, "W_o"));
    this.qk_norm = qk_norm ? new RMSNorm() : null;
    this.h = this.W_k.weight.shape[0];
  }

  // Of queries alone: self-attention, X (T, h) to (T, h). See `extend` for the options.
  forward(X, options = {}) {
    const cache = new KeyValueCache(X.shape[0], this.h);
    try {
      return this.extend(X, cache, options);
    } finally {
      cache.free();
    }
  }

  // Projects keys and values that follow what is in a cache.
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
      this.qk_norm?.rows(row, this.h / this.num_heads);
      rotary?.turn(row, positions ? positions[i - start] : i);
    }
    return cache;
  }

  // Attends from X (T, h), whose keys and values it appends to the cache, unless that is `fixed` (cross-attention).
  //   causal: no query sees what comes after it. first, end: keys before and from there on are padding.
  //   rotary, positions: turns queries and keys by their positions, by default their places in the cache.
  //   head_mask: a factor for what each head brings. seen: is called with the weights, a tensor (H, T, S).
  extend(X, cache, options = {}) {
    const { fixed = false, causal = false, first = 0, end = Number.POSITIVE_INFINITY } = options;
    const { rotary = null, positions = null, head_mask = null, seen = null } = options;
    const T = X.shape[0],
      past = fixed ? 0 : cache.length,
      d = this.h / this.num_heads;
    const Q = this.W_q.forward(X); // (T, h)
    for (let i = 0; i < T; i++) {
      this.qk_norm?.rows(Q.row(i), d);
      rotary?.turn(Q.row(i), positions ? positions[i] : past + i);
    }
    if (!fixed) this.project(X, cache, { rotary, positions });
    const S = cache.length,
      weights = new Tensor(this.num_heads, T, S),
      Y = new Tensor(T, this.h);
    for (let i = 0, x = Q.data; i < x.length; i++) x[i] /= Math.sqrt(d);
    for (let head = 0; head < this.num_heads; head++) {
      const scores = part(weights, head * T);
      multiplyTransposed(part(Q, 0, head * d), part(cache.keys, 0, head * d), scores, T, d, S);
      for (let i = 0; i < T; i++) {
        const last = Math.min(S, end, causal ? past + i + 1 : S);
        const row = weights.data.subarray((head * T + i) * S, (head * T + i + 1) * S);
        if (last > first) softmaxRow(row, first, last);
        else row.fill(0); // it may look at nothing, and gets nothing
      }
      multiply(scores, part(cache.values, 0, head * d), part(Y, 0, head * d), T, S, d);
    }
    seen?.(weights);
    if (head_mask) this.#factors(Y, head_mask, d);
    return this.W_o.forward(Y);
  }

  #factors(Y, head_mask, d) {
    const data = Y.data;
    for (let i = 0; i < data.length; i++) data[i] *= head_mask[Math.floor((i % this.h) / d)];
  }
}
