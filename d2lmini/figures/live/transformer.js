// The blocks of the Transformer: feed-forward network, residual connection with layer norm, encoder, decoder.
import { activationOf } from "./activations.js";
import { LayerNorm, Linear, residual, under } from "./layers.js";
import { KeyValueCache, MultiHeadAttention } from "./multi_head.js";

export class PositionWiseFFN {
  constructor(weights, activation = "relu") {
    this.dense1 = new Linear(under(weights, "dense1"));
    this.activation = activationOf(activation);
    this.dense2 = new Linear(under(weights, "dense2"));
  }
  forward(X) {
    return this.dense2.forward(this.activation(this.dense1.forward(X)));
  }
}

// LayerNorm(X + Y).
export class AddNorm {
  constructor(weights, norm = LayerNorm, eps) {
    this.ln = new norm(under(weights, "ln"), eps);
  }
  forward(X, Y) {
    return this.ln.forward(residual(X, Y));
  }
}

export class TransformerEncoderBlock {
  constructor(weights, num_heads, options = {}) {
    const { norm_first = false, activation = "relu", norm = LayerNorm, eps, qk_norm = false } = options;
    this.norm_first = norm_first;
    this.attention = new MultiHeadAttention(under(weights, "attention"), num_heads, { qk_norm });
    this.addnorm1 = new AddNorm(under(weights, "addnorm1"), norm, eps);
    this.ffn = new PositionWiseFFN(under(weights, "ffn"), activation);
    this.addnorm2 = new AddNorm(under(weights, "addnorm2"), norm, eps);
  }

  // X (T, h) to (T, h); the options are those of `MultiHeadAttention`.
  forward(X, options = {}) {
    const cache = new KeyValueCache(X.shape[0], this.attention.h);
    try {
      return this.extend(X, cache, options);
    } finally {
      cache.free();
    }
  }

  // As `forward`, of X that follows what is in a cache, which grows.
  extend(X, cache, options = {}) {
    if (this.norm_first) {
      X = residual(X, this.attention.extend(this.addnorm1.ln.forward(X), cache, options));
      return residual(X, this.ffn.forward(this.addnorm2.ln.forward(X)));
    }
    X = this.addnorm1.forward(X, this.attention.extend(X, cache, options));
    return this.addnorm2.forward(X, this.ffn.forward(X));
  }
}

// What one decoder block has projected: its own earlier positions, and the memory.
export class BlockCache {
  constructor(self_attention, cross_attention) {
    this.self_attention = self_attention;
    this.cross_attention = cross_attention;
  }
}

export class TransformerDecoderBlock {
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
  start(memory, capacity) {
    const { h } = this.attention2;
    const fixed = this.attention2.project(memory, new KeyValueCache(memory.shape[0], h));
    return new BlockCache(new KeyValueCache(capacity, h), fixed);
  }

  // Decodes X (T, h), which follows what is in the cache. `own` and `cross` are the options of the two attentions.
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
