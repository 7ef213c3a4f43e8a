// BERT: a Transformer without decoder, every token of which sees all the others; and what a masked token was.
import { activationOf } from "./activations.js";
import { Embedding, Linear, NORMS, residual, under } from "./layers.js";
import { RotaryEmbedding } from "./position.js";
import { tidy } from "./tensor.js";
import { TransformerEncoderBlock } from "./transformer.js";

/**
 * @typedef {import("./layers.js").Weights} Weights
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{ max_len: number, num_hiddens: number, num_heads: number, num_blks: number, positions: "learned" | "rotary",
 *   norm: "layer" | "rms", norm_first: boolean, activation: string, qk_norm: boolean, share_blks?: boolean,
 *   emb_size?: number | null }} BERTConfig
 * @typedef {{ segments?: number[] | null, valid_len?: number, causal?: boolean,
 *   seen?: import("./multi_head.js").SeenBy | null }} Encoding
 */

/** @type {{ layer?: number, rms?: number }} */
const EPS = { layer: 1e-12 }; // as published

export class BERT {
  /** @param {Weights} weights @param {BERTConfig} config */
  constructor(weights, config) {
    const { num_hiddens: h, num_heads, norm_first, activation, qk_norm } = config,
      norm = NORMS[config.norm],
      eps = EPS[config.norm];
    this.config = config;
    this.embedding = new Embedding(under(weights, "embedding"));
    this.pos_embedding = config.positions === "learned" ? new Embedding(under(weights, "pos_embedding")) : null;
    this.rotary = config.positions === "rotary" ? new RotaryEmbedding(h / num_heads, config.max_len) : null;
    this.segment_embedding = new Embedding(under(weights, "segment_embedding"));
    this.norm = new norm(under(weights, "norm"), eps);
    this.widen = config.emb_size ? new Linear(under(weights, "widen")) : null;
    this.blks = Array.from(
      { length: config.share_blks ? 1 : config.num_blks },
      (_, i) =>
        new TransformerEncoderBlock(under(weights, `blks.${i}`), num_heads, {
          norm_first,
          activation,
          norm,
          eps,
          qk_norm,
        }),
    );
    this.last_norm = norm_first ? new norm(under(weights, "last_norm"), eps) : null;
  }

  // What each token means among the others: (T, h). `valid_len`: so many of the first tokens are no padding; `causal`:
  // later tokens are hidden. `seen(block, weights)`: as `MultiHeadAttention`'s.
  /** @param {number[]} tokens @param {Encoding} options */
  forward(tokens, { segments = null, valid_len = tokens.length, causal = false, seen = null } = {}) {
    if (tokens.length > this.config.max_len)
      throw new RangeError(`${tokens.length} tokens, but the model has ${this.config.max_len} positions`);
    return tidy(() => {
      let X = this.segment_embedding.forward(segments ?? tokens.map(() => 0));
      X = residual(this.embedding.forward(tokens), X);
      if (this.pos_embedding) X = residual(this.pos_embedding.forward(tokens.map((_, i) => i)), X);
      X = this.norm.forward(X);
      if (this.widen) X = this.widen.forward(X);
      for (let i = 0; i < this.config.num_blks; i++) {
        const attend = { causal, end: valid_len, rotary: this.rotary, seen: seen && ((weights) => seen(i, weights)) };
        X = this.blks[i % this.blks.length].forward(X, attend);
      }
      return this.last_norm ? this.last_norm.forward(X) : X;
    });
  }
}

export class MaskLM {
  /** @param {Weights} weights @param {BERT} bert */
  constructor(weights, bert) {
    const { activation, norm } = bert.config;
    this.dense = new Linear(under(weights, "dense"));
    this.activation = activationOf(activation);
    this.norm = new NORMS[norm](under(weights, "norm"), EPS[norm]);
    this.decoder = new Linear(under(weights, "decoder"), bert.embedding.weight);
  }
  // (T, h) to logits (T, V).
  /** @param {Tensor} X */
  forward(X) {
    return tidy(() => this.decoder.forward(this.norm.forward(this.activation(this.dense.forward(X)))));
  }
}

export class BERTForPretraining {
  /** @param {Weights} weights @param {BERTConfig} config */
  constructor(weights, config) {
    this.config = config;
    this.bert = new BERT(under(weights, "bert"), config);
    this.mlm = new MaskLM(under(weights, "mlm"), this.bert);
  }
  // Logits (T, V) of what each token was; the options are `BERT`'s.
  /** @param {number[]} tokens @param {Encoding} options */
  forward(tokens, options = {}) {
    return tidy(() => this.mlm.forward(this.bert.forward(tokens, options)));
  }
}
