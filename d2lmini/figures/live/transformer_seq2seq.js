// The Transformer of encoder and decoder: translation without recurrence.
import { Embedding, LayerNorm, Linear, residual, under } from "./layers.js";
import { sinusoidal } from "./position.js";
import { lasting, tidy } from "./tensor.js";
import { TransformerDecoderBlock, TransformerEncoderBlock } from "./transformer.js";

/**
 * @typedef {import("./layers.js").Weights} Weights
 * @typedef {import("./multi_head.js").HeadMasks} HeadMasks
 * @typedef {import("./multi_head.js").SeenBy} SeenBy
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {import("./transformer.js").BlockCache} BlockCache
 * @typedef {{ num_hiddens: number, num_heads: number, num_blks: number, norm_first: boolean }} Seq2SeqConfig
 * @typedef {{ valid_len?: number, positions?: number[] | null, head_masks?: HeadMasks, seen?: SeenBy | null }} Encoding
 * @typedef {{ positions?: number[] | null, head_masks?: { own?: HeadMasks, cross?: HeadMasks } | null,
 *   seen?: SeenBy | null }} Decoding
 */

/** @param {number} length */
const ownPlaces = (length, first = 0) => Array.from({ length }, (_, i) => first + i);

export class TransformerEncoder {
  /** @param {Weights} weights @param {Seq2SeqConfig} config */
  constructor(weights, { num_hiddens, num_heads, num_blks, norm_first }) {
    this.num_hiddens = num_hiddens;
    this.embedding = new Embedding(under(weights, "embedding"));
    this.blks = Array.from(
      { length: num_blks },
      (_, i) => new TransformerEncoderBlock(under(weights, `blks.${i}`), num_heads, { norm_first }),
    );
    this.norm = norm_first ? new LayerNorm(under(weights, "norm")) : null;
  }
  // Tokens, of which `valid_len` count, to (S, h). `positions`: where each stands, by default its place; null: nowhere.
  // `head_masks[block]`, `seen(block, weights)`: as `MultiHeadAttention`'s.
  /** @param {number[]} tokens @param {Encoding} options */
  forward(tokens, { valid_len = tokens.length, positions, head_masks = null, seen = null } = {}) {
    return tidy(() => {
      let X = this.embedding.forward(tokens, Math.sqrt(this.num_hiddens));
      const places = positions === undefined ? ownPlaces(tokens.length) : positions;
      if (places) X = residual(sinusoidal(places, this.num_hiddens), X);
      this.blks.forEach((blk, i) => {
        X = blk.forward(X, {
          end: valid_len,
          head_mask: head_masks?.[i] ?? null,
          seen: seen && ((weights) => seen(i, weights)),
        });
      });
      return this.norm ? this.norm.forward(X) : X;
    });
  }
}

// What the decoder carries from token to token: a `BlockCache` for each block, and how much of the memory counts.
export class DecoderState {
  /** @param {BlockCache[]} caches @param {number} valid_len */
  constructor(caches, valid_len) {
    this.caches = lasting(caches);
    this.valid_len = valid_len;
  }
  get length() {
    return this.caches[0].self_attention.length;
  }
  /** @param {number} length */
  first(length) {
    for (const cache of this.caches) cache.self_attention.first(length);
  }
  // Another state that may go on by other tokens; the memory is shared.
  copy() {
    const caches = this.caches.map(({ self_attention, cross_attention }) => ({
      self_attention: self_attention.copy(),
      cross_attention,
    }));
    return new DecoderState(caches, this.valid_len);
  }
  free({ memory = true } = {}) {
    for (const { self_attention, cross_attention } of this.caches) {
      self_attention.free();
      if (memory) cross_attention.free();
    }
  }
}

export class TransformerDecoder {
  /** @param {Weights} weights @param {Seq2SeqConfig} config @param {Embedding} embedding */
  constructor(weights, { num_hiddens, num_heads, num_blks, norm_first }, embedding) {
    this.num_hiddens = num_hiddens;
    this.embedding = embedding;
    this.blks = Array.from(
      { length: num_blks },
      (_, i) => new TransformerDecoderBlock(under(weights, `blks.${i}`), num_heads, { norm_first }),
    );
    this.norm = norm_first ? new LayerNorm(under(weights, "norm")) : null;
    this.dense = new Linear(under(weights, "dense"), embedding.weight);
  }
  // A `DecoderState` from the encoder's outputs (S, h), with room for so many tokens.
  /** @param {Tensor} enc_outputs @param {number} valid_len @param {number} capacity */
  init_state(enc_outputs, valid_len, capacity) {
    return new DecoderState(
      this.blks.map((blk) => tidy(() => blk.start(enc_outputs, capacity))),
      valid_len,
    );
  }
  // Tokens that continue those in the state to logits (T, V). `head_masks` has `own[block]` and `cross[block]`;
  // `seen(block, weights, which)` is told "own" or "cross".
  /** @param {number[]} tokens @param {DecoderState} state @param {Decoding} options */
  forward(tokens, state, { positions, head_masks = null, seen = null } = {}) {
    return tidy(() => {
      let X = this.embedding.forward(tokens, Math.sqrt(this.num_hiddens));
      const places = positions === undefined ? ownPlaces(tokens.length, state.length) : positions;
      if (places) X = residual(sinusoidal(places, this.num_hiddens), X);
      this.blks.forEach((blk, i) => {
        const options = (/** @type {"own" | "cross"} */ which) => ({
          head_mask: head_masks?.[which]?.[i] ?? null,
          seen: seen && ((weights) => seen(i, weights, which)),
        });
        X = blk.forward(X, state.caches[i], options("own"), { ...options("cross"), end: state.valid_len });
      });
      return this.dense.forward(this.norm ? this.norm.forward(X) : X);
    });
  }
}

export class Transformer {
  /** @param {Weights} weights @param {Seq2SeqConfig} config */
  constructor(weights, config) {
    this.config = config;
    this.encoder = new TransformerEncoder(under(weights, "encoder"), config);
    this.decoder = new TransformerDecoder(under(weights, "decoder"), config, this.encoder.embedding);
  }
  // The decoder's state before the first token. The options are the encoder's.
  /** @param {number[]} tokens @param {number} capacity @param {Encoding} options */
  start(tokens, capacity, options = {}) {
    return tidy(() =>
      this.decoder.init_state(this.encoder.forward(tokens, options), options.valid_len ?? tokens.length, capacity),
    );
  }
}
