// TinyTransformer: the small model that learns in the page, with all that a reader may switch on and off.
import { Embedding, Identity, Linear, NORMS, residual, under } from "./layers.js";
import { alibiSlopes, RotaryEmbedding, sinusoidal } from "./position.js";
import { TransformerEncoderBlock } from "./transformer.js";

/**
 * @typedef {import("./layers.js").Tape} Tape
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{ num_hiddens: number, num_heads: number, num_blks: number, vocab_size: number, max_len: number,
 *   causal: boolean, positions: "learned" | "sines" | "rotary" | "alibi" | null, norm: "layer" | "rms",
 *   norm_place: "before" | "after" | null, residual: boolean, ffn: string | null, ffn_num_hiddens?: number | null }} TinyConfig
 */

// The weights of a model in the order of Python's: [name, shape, what they begin as]. That is a number for all of them,
// or {std} of a normal distribution.
/** @param {TinyConfig} config */
export function tinyWeights(config) {
  const { vocab_size: V, num_hiddens: h, num_blks, ffn, positions, norm, norm_place } = config,
    wide = config.ffn_num_hiddens ?? 4 * h,
    depth = config.residual ? Math.sqrt(2 * num_blks) : 1,
    /** @type {[string, number[], number | { std: number }][]} */
    found = [];
  const matrix = (/** @type {string} */ name, outputs, inputs, over = 1) =>
    found.push([`${name}.weight`, [outputs, inputs], { std: 1 / Math.sqrt(inputs) / over }]);
  const normed = (/** @type {string} */ name) => {
    if (!norm_place) return;
    found.push([`${name}.weight`, [h], 1]);
    if (norm === "layer") found.push([`${name}.bias`, [h], 0]);
  };
  matrix("embedding", V, h);
  if (positions === "learned") matrix("pos_embedding", config.max_len, h);
  for (let i = 0; i < num_blks; i++) {
    const blk = `blks.${i}`;
    for (const name of ["W_q", "W_k", "W_v"]) matrix(`${blk}.attention.${name}`, h, h);
    matrix(`${blk}.attention.W_o`, h, h, depth);
    normed(`${blk}.addnorm1.ln`);
    if (!ffn) continue;
    matrix(`${blk}.ffn.dense1`, wide, h);
    found.push([`${blk}.ffn.dense1.bias`, [wide], 0]);
    matrix(`${blk}.ffn.dense2`, h, wide, depth);
    found.push([`${blk}.ffn.dense2.bias`, [h], 0]);
    normed(`${blk}.addnorm2.ln`);
  }
  if (norm_place === "before") normed("norm");
  found.push(["dense.weight", [V, h], { std: 0.02 }]); // so the loss begins at log V
  return found;
}

export class TinyTransformer {
  /** @param {import("./layers.js").Weights} weights @param {TinyConfig} config */
  constructor(weights, config) {
    const { num_hiddens: h, num_heads, num_blks, max_len, positions, norm_place } = config,
      norm = norm_place ? NORMS[config.norm] : Identity,
      norm_first = norm_place === "before";
    const options = { norm_first, activation: config.ffn, norm, residual_connections: config.residual };
    this.config = config;
    this.embedding = new Embedding(under(weights, "embedding"));
    this.pos_embedding = positions === "learned" ? new Embedding(under(weights, "pos_embedding")) : null;
    this.rotary = positions === "rotary" ? new RotaryEmbedding(h / num_heads, max_len) : null;
    this.slopes = positions === "alibi" ? alibiSlopes(num_heads) : null;
    this.blks = Array.from(
      { length: num_blks },
      (_, i) => new TransformerEncoderBlock(under(weights, `blks.${i}`), num_heads, options),
    );
    this.norm = norm_first ? new norm(under(weights, "norm")) : new Identity();
    this.dense = new Linear(under(weights, "dense"));
  }

  // Scores at each token, (B * T, V), of sequences of one length that follow each other in `tokens`. `tape`: for
  // `backward`. `seen(block, weights)`: as `MultiHeadAttention.learn`'s.
  /**
   * @param {number[] | Int32Array} tokens
   * @param {{ batch?: number, tape?: Tape, seen?: import("./multi_head.js").SeenBy | null }} options
   */
  forward(tokens, { batch = 1, tape = [], seen = null } = {}) {
    const T = tokens.length / batch,
      { num_hiddens: h, max_len, positions, causal } = this.config;
    if (positions === "learned" && T > max_len)
      throw new RangeError(`${T} tokens, but the model has learned ${max_len} positions`);
    const places = Array.from(tokens, (_, i) => i % T);
    let X = this.embedding.forward(tokens, positions === "sines" ? Math.sqrt(h) : 1, tape); // (B * T, h)
    if (positions === "sines") X = residual(sinusoidal(places, h), X);
    if (this.pos_embedding) X = residual(this.pos_embedding.forward(places, 1, tape), X);
    this.blks.forEach((blk, i) => {
      const show = seen && ((weights) => seen(i, weights));
      X = blk.forward(X, { tape, batch, causal, rotary: this.rotary, slopes: this.slopes, seen: show });
    });
    return this.dense.forward(this.norm.forward(X, tape), tape);
  }

  // The gradient by the scores, (B * T, V), into those of all weights.
  /** @param {Tensor} dScores @param {Tape} tape */
  backward(dScores, tape) {
    let dX = this.norm.backward(this.dense.backward(dScores, tape), tape);
    for (const blk of [...this.blks].reverse()) dX = blk.backward(dX, tape);
    this.pos_embedding?.backward(dX, tape);
    this.embedding.backward(dX, tape);
  }
}
