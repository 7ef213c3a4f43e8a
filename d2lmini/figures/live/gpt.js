// GPT: a Transformer without encoder, which predicts each token from those before it.
import { Embedding, Linear, NORMS, residual, under } from "./layers.js";
import { KeyValueCache } from "./multi_head.js";
import { RotaryEmbedding } from "./position.js";
import { lasting, Tensor, tidy } from "./tensor.js";
import { TransformerEncoderBlock } from "./transformer.js";

/**
 * @typedef {import("./layers.js").Weights} Weights
 * @typedef {import("./multi_head.js").HeadMasks} HeadMasks
 * @typedef {import("./multi_head.js").SeenBy} SeenBy
 * @typedef {{ vocab_size: number, max_len: number, num_hiddens: number, num_heads: number, num_blks: number,
 *   positions: "learned" | "rotary" | null, norm: "layer" | "rms", norm_first: boolean, ffn: string, qk_norm: boolean,
 *   tie_weights: boolean, norm_eps?: number | null, head_size?: number | null, rotary_base?: number }} GPTConfig
 * @typedef {{ seen?: SeenBy | null, head_masks?: HeadMasks, skip?: number[], last?: number, padding?: number,
 *   after?: ((i: number, X: Tensor) => void) | null }} Reading
 */

export class GPT {
  /** @param {Weights} weights @param {GPTConfig} config */
  constructor(weights, config) {
    const { num_hiddens: h, num_heads, norm_first, ffn, qk_norm } = config,
      norm = NORMS[config.norm],
      eps = config.norm_eps ?? undefined;
    this.config = config;
    this.embedding = new Embedding(under(weights, "embedding"));
    this.pos_embedding = config.positions === "learned" ? new Embedding(under(weights, "pos_embedding")) : null;
    this.rotary =
      config.positions === "rotary"
        ? new RotaryEmbedding(config.head_size ?? h / num_heads, config.max_len, config.rotary_base)
        : null;
    const options = { norm_first, activation: ffn, norm, eps, qk_norm };
    this.blks = Array.from(
      { length: config.num_blks },
      (_, i) => new TransformerEncoderBlock(under(weights, `blks.${i}`), num_heads, options),
    );
    this.norm = norm_first ? new norm(under(weights, "norm"), eps) : null;
    this.dense = new Linear(under(weights, "dense"), config.tie_weights ? this.embedding.weight : null);
  }

  // Scores of what follows each token, (T, V). `padding`: so many of the first tokens are none. `seen(block, weights)`
  // and `head_masks[block]`: as `MultiHeadAttention`'s.
  /** @param {number[]} tokens @param {Reading} options */
  forward(tokens, options = {}) {
    const state = this.empty_state(tokens.length, options.padding);
    try {
      return this.extend(tokens, state, options);
    } finally {
      state.free();
    }
  }

  // A state of no tokens, with room for so many.
  empty_state(capacity = this.config.max_len, padding = 0) {
    return new GPTState(
      this.blks.map((blk) => new KeyValueCache(capacity, blk.attention.h)),
      padding,
    );
  }

  // Reads tokens that follow those in a state, all at once: scores (T, V). `skip`: blocks that are left out.
  // `after(i, X)` is called with the state X (T, h) after i blocks. `last`: scores of so many of the last tokens alone.
  /** @param {number[]} tokens @param {GPTState} state @param {Reading} options */
  extend(tokens, state, { seen = null, head_masks = null, skip = [], after = null, last = tokens.length } = {}) {
    const past = state.length,
      { max_len, positions } = this.config;
    if (positions === "learned" && past + tokens.length > max_len)
      throw new RangeError(`${past + tokens.length} tokens, but the context is ${max_len}`);
    return tidy(() => {
      const places = Array.from(tokens, (_, i) => Math.max(0, past + i - state.padding));
      let X = this.embedding.forward(tokens); // (T, h)
      if (this.pos_embedding) X = residual(this.pos_embedding.forward(places), X);
      after?.(0, X);
      this.blks.forEach((blk, i) => {
        if (skip.includes(i)) state.caches[i].skip(tokens.length);
        else
          X = tidy(() =>
            blk.extend(X, state.caches[i], {
              causal: true,
              first: state.padding,
              rotary: this.rotary,
              positions: places,
              head_mask: head_masks?.[i] ?? null,
              seen: seen && ((weights) => seen(i, weights)),
            }),
          );
        after?.(i + 1, X);
      });
      return this.scores(last === tokens.length ? X : lastRows(X, last));
    });
  }

  // Scores (T, V) of what follows, by states (T, h): through the last norm and the last layer.
  /** @param {Tensor} X */
  scores(X) {
    return this.dense.forward(this.norm ? this.norm.forward(X) : X);
  }
}

/** @param {Tensor} X @param {number} number */
function lastRows(X, number) {
  const [T, h] = X.shape;
  return Tensor.from(X.data.subarray((T - number) * h), number, h);
}

export class GPTState {
  /** @param {KeyValueCache[]} caches */
  constructor(caches, padding = 0) {
    this.caches = lasting(caches);
    this.padding = padding;
  }
  get length() {
    return this.caches[0].length;
  }
  // Forgets all but the first tokens.
  /** @param {number} length */
  first(length) {
    for (const cache of this.caches) cache.first(length);
  }
  free() {
    for (const cache of this.caches) cache.free();
  }
}
