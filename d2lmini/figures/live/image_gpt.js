// ImageGPT: a picture as a text of grey values, written pixel by pixel.
import { Embedding, LayerNorm, Linear, residual, under } from "./layers.js";
import { KeyValueCache } from "./multi_head.js";
import { tidy } from "./tensor.js";
import { TransformerEncoderBlock } from "./transformer.js";

/**
 * @typedef {{ img_size: number | [number, number], num_levels: number, num_heads: number, num_blks: number }} ImageConfig
 * @typedef {{ seen?: import("./multi_head.js").SeenBy | null }} Watching
 */

export class ImageGPT {
  /** @param {import("./layers.js").Weights} weights @param {ImageConfig} config */
  constructor(weights, config) {
    this.config = config;
    this.img_size = [config.img_size].flat();
    if (this.img_size.length === 1) this.img_size.push(this.img_size[0]);
    this.embedding = new Embedding(under(weights, "embedding")); // the last is the start sign
    this.rows = new Embedding(under(weights, "rows"));
    this.columns = new Embedding(under(weights, "columns"));
    const options = { norm_first: true, activation: "gelu" };
    this.blks = Array.from(
      { length: config.num_blks },
      (_, i) => new TransformerEncoderBlock(under(weights, `blks.${i}`), config.num_heads, options),
    );
    this.norm = new LayerNorm(under(weights, "norm"));
    this.dense = new Linear(under(weights, "dense"));
  }

  // Caches without pixels, a `KeyValueCache` for each block: what `step` starts from.
  empty_caches() {
    const capacity = this.img_size[0] * this.img_size[1];
    return this.blks.map((blk) => new KeyValueCache(capacity, blk.attention.h));
  }

  // Goes on from what is in the caches: the next pixels, at place 0 the start sign, to scores (n, K) of those that
  // follow. `seen(block, weights)`: as `MultiHeadAttention`'s.
  /** @param {number[]} inputs @param {KeyValueCache[]} caches @param {Watching} options */
  step(inputs, caches, { seen = null } = {}) {
    const past = caches[0].length,
      [height, width] = this.img_size;
    if (past + inputs.length > height * width)
      throw new RangeError(`${past + inputs.length} pixels, but a picture has ${height * width}`);
    return tidy(() => {
      const places = Array.from(inputs, (_, i) => past + i);
      let X = this.embedding.forward(inputs);
      X = residual(this.rows.forward(places.map((place) => Math.floor(place / width))), X);
      X = residual(this.columns.forward(places.map((place) => place % width)), X);
      this.blks.forEach((blk, i) => {
        X = blk.extend(X, caches[i], { causal: true, seen: seen && ((weights) => seen(i, weights)) });
      });
      return this.dense.forward(this.norm.forward(X));
    });
  }

  // Scores of every pixel, given those before it: (T, K).
  /** @param {number[]} pixels @param {Watching} options */
  forward(pixels, options = {}) {
    const caches = this.empty_caches();
    try {
      return this.step([this.config.num_levels, ...pixels.slice(0, -1)], caches, options);
    } finally {
      for (const cache of caches) cache.free();
    }
  }
}
