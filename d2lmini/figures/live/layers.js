// Layers with weights: `weights(name)` gives a tensor of a model by its name in Python, `under` those of a part.
import { multiplyTransposed, part, Tensor } from "./tensor.js";

// The weights of a part of a model: `under(weights, "ffn")("dense1.weight")`. Where there is none of a name: null.
export const under = (weights, part) => (name) => weights(`${part}.${name}`);

// A weight that a layer cannot do without.
function needed(weight) {
  if (!weight) throw new Error("the weights lack a layer of the model");
  return weight;
}

export class Linear {
  // `tied`: the weight of another layer, which this one shares.
  constructor(weights, tied = null) {
    this.weight = tied ?? needed(weights("weight")); // (outputs, inputs)
    this.bias = weights("bias");
  }
  // X (T, inputs) to (T, outputs).
  forward(X) {
    const Y = new Tensor(X.shape[0], this.weight.shape[0]);
    this.into(X, part(Y));
    return Y;
  }
  // As `forward`, into rows that are there already: {place, stride, data}, as `part` gives them.
  into(X, to) {
    const [outputs, inputs] = this.weight.shape;
    multiplyTransposed(part(X), part(this.weight), to, X.shape[0], inputs, outputs);
    if (this.bias) addRows(to, this.bias, X.shape[0]);
  }
}

function addRows({ place, stride }, bias, rows) {
  const floats = new Float32Array(bias.data.buffer),
    values = bias.data;
  for (let i = 0; i < rows; i++) {
    const start = place / 4 + i * stride;
    for (let j = 0; j < values.length; j++) floats[start + j] += values[j];
  }
}

export class Embedding {
  constructor(weights) {
    this.weight = needed(weights("weight")); // (V, h)
  }
  // Integers, T of them, to (T, h), times a factor.
  forward(tokens, factor = 1) {
    const [size, h] = this.weight.shape;
    if (!tokens.length) throw new RangeError("there are no tokens");
    const X = new Tensor(tokens.length, h);
    tokens.forEach((token, i) => {
      if (!(Number.isInteger(token) && token >= 0 && token < size))
        throw new RangeError(`token ${token} is none of the ${size} of this model`);
      const from = this.weight.row(token),
        to = X.row(i);
      for (let j = 0; j < h; j++) to[j] = factor * from[j];
    });
    return X;
  }
}

export class LayerNorm {
  constructor(weights, eps = 1e-5) {
    this.weight = needed(weights("weight"));
    this.bias = weights("bias");
    this.eps = eps;
  }
  // X (T, h) to (T, h).
  forward(X) {
    const Y = new Tensor(...X.shape),
      h = X.shape.at(-1);
    const weight = this.weight.data,
      bias = this.bias?.data;
    for (let i = 0; i < X.length / h; i++) {
      const x = X.data.subarray(i * h, (i + 1) * h),
        y = Y.data.subarray(i * h, (i + 1) * h);
      let mean = 0,
        variance = 0;
      for (let j = 0; j < h; j++) mean += x[j] / h;
      for (let j = 0; j < h; j++) variance += (x[j] - mean) ** 2 / h;
      const factor = 1 / Math.sqrt(variance + this.eps);
      for (let j = 0; j < h; j++) y[j] = (x[j] - mean) * factor * weight[j] + (bias ? bias[j] : 0);
    }
    return Y;
  }
}

// Without weights it is the norm of queries and keys. torch's eps, where none is named: that of float32.
export class RMSNorm {
  constructor(weights = null, eps = 2 ** -23) {
    this.weight = weights?.("weight") ?? null;
    this.eps = eps;
  }
  forward(X) {
    const Y = new Tensor(...X.shape);
    Y.data.set(X.data);
    this.rows(Y.data, X.shape.at(-1));
    return Y;
  }
  // In place, each `size` numbers of an array.
  rows(data, size) {
    const weight = this.weight?.data;
    for (let start = 0; start < data.length; start += size) {
      let squares = 0;
      for (let j = 0; j < size; j++) squares += data[start + j] ** 2;
      const factor = 1 / Math.sqrt(squares / size + this.eps);
      for (let j = 0; j < size; j++) data[start + j] *= weight ? factor * weight[j] : factor;
    }
  }
}

export const NORMS = { layer: LayerNorm, rms: RMSNorm };

// X + Y, into Y.
export function residual(X, Y) {
  const x = X.data,
    y = Y.data;
  for (let i = 0; i < y.length; i++) y[i] += x[i];
  return Y;
}
