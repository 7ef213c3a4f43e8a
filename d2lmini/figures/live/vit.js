// The vision Transformer: a picture is a sequence of patches, and an encoder reads it.
import { activationOf } from "./activations.js";
import { LayerNorm, Linear, needed, residual, under } from "./layers.js";
import { MultiHeadAttention } from "./multi_head.js";
import { Tensor, tidy } from "./tensor.js";

/**
 * @typedef {import("./layers.js").Weights} Weights
 * @typedef {import("./multi_head.js").Attending} Attending
 * @typedef {{ img_size: number, patch_size: number, num_hiddens: number, num_heads: number, num_blks: number }} ViTConfig
 */

// Cuts a picture (height, width) of one channel into patches, row by row: (patches, p * p).
/** @param {ArrayLike<number>} pixels @param {number[]} size @param {number} p */
export function patchify(pixels, [height, width], p) {
  const columns = width / p,
    patches = new Tensor((height / p) * columns, p * p);
  const data = patches.data;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const patch = Math.floor(y / p) * columns + Math.floor(x / p);
      data[patch * p * p + (y % p) * p + (x % p)] = pixels[y * width + x];
    }
  return patches;
}

class ViTMLP {
  /** @param {Weights} weights */
  constructor(weights) {
    this.dense1 = new Linear(under(weights, "dense1"));
    this.activation = activationOf("gelu");
    this.dense2 = new Linear(under(weights, "dense2"));
  }
  /** @param {Tensor} X */
  forward(X) {
    return this.dense2.forward(this.activation(this.dense1.forward(X)));
  }
}

class ViTBlock {
  /** @param {Weights} weights @param {number} num_heads */
  constructor(weights, num_heads) {
    this.ln1 = new LayerNorm(under(weights, "ln1"));
    this.attention = new MultiHeadAttention(under(weights, "attention"), num_heads);
    this.ln2 = new LayerNorm(under(weights, "ln2"));
    this.mlp = new ViTMLP(under(weights, "mlp"));
  }
  /** @param {Tensor} X @param {Attending} options */
  forward(X, options) {
    X = residual(X, this.attention.forward(this.ln1.forward(X), options));
    return residual(X, this.mlp.forward(this.ln2.forward(X)));
  }
}

export class ViT {
  /** @param {Weights} weights @param {ViTConfig} config */
  constructor(weights, config) {
    this.config = config;
    const side = config.img_size / config.patch_size;
    this.grid = [side, side];
    this.patch_embedding = new Linear(under(weights, "patch_embedding.conv"));
    const [h, ...kernel] = this.patch_embedding.weight.shape; // a convolution's kernel (h, 1, p, p), as a matrix
    this.patch_embedding.weight.shape = [h, kernel.reduce((a, b) => a * b, 1)];
    this.cls_token = needed(weights("cls_token"));
    this.pos_embedding = needed(weights("pos_embedding")); // (1, 1 + patches, h)
    this.blks = Array.from(
      { length: config.num_blks },
      (_, i) => new ViTBlock(under(weights, `blks.${i}`), config.num_heads),
    );
    this.ln = new LayerNorm(under(weights, "head.0"));
    this.dense = new Linear(under(weights, "head.1"));
  }

  // A picture, img_size * img_size numbers from 0 to 1, to scores (1, C). `kept`: the patches that are there, by
  // default all; `places`: at which position each stands, by default its own, null for none. `seen(block, weights)`: as
  // `MultiHeadAttention`'s, of the class token and the patches kept.
  /**
   * @param {ArrayLike<number>} pixels
   * @param {{ kept?: number[] | null, places?: (number | null)[] | null,
   *   seen?: import("./multi_head.js").SeenBy | null }} options
   */
  forward(pixels, { kept = null, places = null, seen = null } = {}) {
    const { img_size, patch_size, num_hiddens: h } = this.config;
    if (pixels.length !== img_size ** 2) throw new RangeError(`${pixels.length} pixels, expected ${img_size ** 2}`);
    return tidy(() => {
      const patches = this.patch_embedding.forward(patchify(pixels, [img_size, img_size], patch_size));
      const there = kept ?? Array.from({ length: patches.shape[0] }, (_, i) => i);
      let X = new Tensor(1 + there.length, h);
      const positions = this.pos_embedding.data;
      X.row(0).set(this.cls_token.data);
      there.forEach((patch, i) => X.row(i + 1).set(patches.row(patch)));
      for (let i = 0; i < X.shape[0]; i++) {
        const place = i === 0 ? -1 : places ? places[there[i - 1]] : there[i - 1];
        if (place === null) continue;
        const row = X.row(i);
        for (let j = 0; j < h; j++) row[j] += positions[(place + 1) * h + j];
      }
      this.blks.forEach((blk, i) => {
        X = blk.forward(X, { seen: seen && ((weights) => seen(i, weights)) });
      });
      const first = new Tensor(1, h);
      first.data.set(X.row(0));
      return this.dense.forward(this.ln.forward(first));
    });
  }
}

// Follows attention from the last block to the input: (T, T), as Python's `attention_rollout`. `weights` is an array of
// {shape: [H, T, T], data}, the first block's first.
/** @param {import("./tensor.js").Numbers[]} weights */
export function attentionRollout(weights) {
  let total = new Float64Array(0);
  for (const {
    shape: [H, T],
    data,
  } of weights) {
    const mixed = new Float64Array(T * T);
    for (let i = 0; i < T * T; i++) {
      for (let head = 0; head < H; head++) mixed[i] += data[head * T * T + i] / H / 2;
      if (i % (T + 1) === 0) mixed[i] += 0.5;
    }
    if (!total.length) {
      total = mixed;
      continue;
    }
    const next = new Float64Array(T * T);
    for (let i = 0; i < T; i++)
      for (let k = 0; k < T; k++) for (let j = 0; j < T; j++) next[i * T + j] += mixed[i * T + k] * total[k * T + j];
    total = next;
  }
  return total;
}
