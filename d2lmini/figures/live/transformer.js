// The blocks of the Transformer: feed-forward network, residual connection with layer norm, encoder, decoder.
import { activationOf } from "./activations.js";
import { LayerNorm, Linear, residual, under } from "./layers.js";
import { KeyValueCache, MultiHeadAttention } from "./multi_head.js";
import { tidy } from "./tensor.js";

/**
 * @typedef {import("./layers.js").Layer} Layer
 * @typedef {import("./layers.js").NormClass} NormClass
 * @typedef {import("./layers.js").Tape} Tape
 * @typedef {import("./layers.js").Weights} Weights
 * @typedef {import("./multi_head.js").Attending} Attending
 * @typedef {import("./multi_head.js").Learning} Learning
 * @typedef {import("./tensor.js").Tensor} Tensor
 */

export class PositionWiseFFN {
  /** @param {Weights} weights */
  constructor(weights, activation = "relu") {
    this.dense1 = new Linear(under(weights, "dense1"));
    this.activation = activationOf(activation);
    this.dense2 = new Linear(under(weights, "dense2"));
  }
  /** @param {Tensor} X @param {Tape | null} tape */
  forward(X, tape = null) {
    const hidden = this.dense1.forward(X, tape);
    tape?.push(hidden);
    return this.dense2.forward(this.activation(hidden), tape);
  }
  /** @param {Tensor} dY @param {Tape} tape */
  backward(dY, tape) {
    const dHidden = this.dense2.backward(dY, tape);
    return this.dense1.backward(this.activation.backward(dHidden, tape.pop()), tape);
  }
}

// A network with a gate: dense2(activation(gate(X)) * dense1(X)).
export class GatedFFN extends PositionWiseFFN {
  /** @param {Weights} weights @param {string} activation */
  constructor(weights, activation) {
    super(weights, activation);
    this.gate = new Linear(under(weights, "gate"));
  }
  /** @param {Tensor} X @param {Tape | null} tape */
  forward(X, tape = null) {
    if (tape) throw new Error("a network with a gate cannot learn here");
    const hidden = this.activation(this.gate.forward(X)),
      to = hidden.data,
      from = this.dense1.forward(X).data;
    for (let i = 0; i < to.length; i++) to[i] *= from[i];
    return this.dense2.forward(hidden);
  }
}

/** @type {Record<string, string>} */
const GATED = { swiglu: "silu", geglu: "gelu_tanh" }; // and the activation of the gate

// A feed-forward network by its name.
/** @type {(weights: Weights, name: string) => PositionWiseFFN} */
const networkOf = (weights, name) =>
  Object.hasOwn(GATED, name) ? new GatedFFN(weights, GATED[name]) : new PositionWiseFFN(weights, name);

// LayerNorm(X + Y).
export class AddNorm {
  /** @param {Weights} weights @param {NormClass} norm @param {number} [eps] */
  constructor(weights, norm = LayerNorm, eps) {
    this.ln = new norm(under(weights, "ln"), eps);
  }
  /** @param {Tensor} X @param {Tensor} Y */
  forward(X, Y) {
    return this.ln.forward(residual(X, Y));
  }
}

/**
 * @typedef {{ norm_first?: boolean, activation?: string | null, norm?: NormClass, eps?: number, qk_norm?: boolean,
 *   residual_connections?: boolean }} BlockOptions
 */

export class TransformerEncoderBlock {
  /** @param {Weights} weights @param {number} num_heads @param {BlockOptions} options */
  constructor(weights, num_heads, options = {}) {
    const { norm_first = false, activation = "relu", norm = LayerNorm, eps, qk_norm = false } = options;
    const { residual_connections = true } = options;
    this.norm_first = norm_first;
    this.residual_connections = residual_connections;
    this.attention = new MultiHeadAttention(under(weights, "attention"), num_heads, { qk_norm });
    this.addnorm1 = new AddNorm(under(weights, "addnorm1"), norm, eps);
    this.ffn = activation ? networkOf(under(weights, "ffn"), activation) : null;
    this.addnorm2 = activation ? new AddNorm(under(weights, "addnorm2"), norm, eps) : null;
  }

  // X (T, h) to (T, h); the options are those of `MultiHeadAttention`.
  /** @param {Tensor} X @param {Attending | Learning} options */
  forward(X, options = {}) {
    return this.#apply(X, (Q) => this.attention.forward(Q, options), "tape" in options ? options.tape : null);
  }

  /** @param {Tensor} dY @param {Tape} tape */
  backward(dY, tape) {
    return tidy(() => {
      if (this.ffn && this.addnorm2) dY = this.#back(this.addnorm2, dY, this.ffn, tape);
      return this.#back(this.addnorm1, dY, this.attention, tape);
    });
  }

  // As `forward`, of X that follows what is in a cache, which grows.
  /** @param {Tensor} X @param {KeyValueCache} cache @param {Attending} options */
  extend(X, cache, options = {}) {
    return this.#apply(X, (Q) => this.attention.extend(Q, cache, options));
  }

  /** @param {Tensor} X @param {(X: Tensor) => Tensor} attend @param {Tape | null} tape */
  #apply(X, attend, tape = null) {
    const { ffn, addnorm2 } = this;
    X = this.#branch(this.addnorm1, X, attend, tape);
    return ffn && addnorm2 ? this.#branch(addnorm2, X, (Q) => ffn.forward(Q, tape), tape) : X;
  }

  /** @param {AddNorm} addnorm @param {Tensor} X @param {(X: Tensor) => Tensor} work @param {Tape | null} tape */
  #branch({ ln }, X, work, tape) {
    let Y = work(this.norm_first ? ln.forward(X, tape) : X);
    if (this.residual_connections) Y = residual(X, Y);
    return this.norm_first ? Y : ln.forward(Y, tape);
  }

  /** @param {AddNorm} addnorm @param {Tensor} dY @param {Pick<Layer, "backward">} part @param {Tape} tape */
  #back({ ln }, dY, part, tape) {
    if (!this.norm_first) dY = ln.backward(dY, tape);
    let dX = part.backward(dY, tape);
    if (this.norm_first) dX = ln.backward(dX, tape);
    return this.residual_connections ? residual(dY, dX) : dX;
  }
}

// What one decoder block has projected: its own earlier positions, and the memory.
export class BlockCache {
  /** @param {KeyValueCache} self_attention @param {KeyValueCache} cross_attention */
  constructor(self_attention, cross_attention) {
    this.self_attention = self_attention;
    this.cross_attention = cross_attention;
  }
}

export class TransformerDecoderBlock {
  /** @param {Weights} weights @param {number} num_heads */
  constructor(weights, num_heads, { norm_first = false, activation = "relu" } = {}) {
    this.norm_first = norm_first;
    this.attention1 = new MultiHeadAttention(under(weights, "attention1"), num_heads);
    this.addnorm1 = new AddNorm(under(weights, "addnorm1"));
    this.attention2 = new MultiHeadAttention(under(weights, "attention2"), num_heads);
    this.addnorm2 = new AddNorm(under(weights, "addnorm2"));
    this.ffn = new PositionWiseFFN(under(weights, "ffn"), activation);
    this.addnorm3 = new AddNorm(under(weights, "addnorm3"));
  }

  // The `BlockCache` before the first token: the memory (S, h) projected, and room for so many tokens.
  /** @param {Tensor} memory @param {number} capacity */
  start(memory, capacity) {
    const { h } = this.attention2;
    const fixed = this.attention2.project(memory, new KeyValueCache(memory.shape[0], h));
    return new BlockCache(new KeyValueCache(capacity, h), fixed);
  }

  // Decodes X (T, h), which follows what is in the cache. `own` and `cross` are the options of the two attentions.
  /** @param {Tensor} X @param {BlockCache} cache @param {Attending} own @param {Attending} cross */
  forward(X, cache, own = {}, cross = {}) {
    const options = { causal: true, ...own },
      memory = { fixed: true, ...cross };
    if (this.norm_first) {
      X = residual(X, this.attention1.extend(this.addnorm1.ln.forward(X), cache.self_attention, options));
      X = residual(X, this.attention2.extend(this.addnorm2.ln.forward(X), cache.cross_attention, memory));
      return residual(X, this.ffn.forward(this.addnorm3.ln.forward(X)));
    }
    X = this.addnorm1.forward(X, this.attention1.extend(X, cache.self_attention, options));
    X = this.addnorm2.forward(X, this.attention2.extend(X, cache.cross_attention, memory));
    return this.addnorm3.forward(X, this.ffn.forward(X));
  }
}
