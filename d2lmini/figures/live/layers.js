// Layers with weights: `weights(name)` gives a tensor of a model by its name in Python, `under` those of a part.
//
// Where a model learns, `forward` gets a tape, an array: what `backward` needs is pushed onto it, and `backward` takes it
// off again, so that it goes through the layers in the opposite order. It gets the gradient of the loss by what `forward`
// returned, returns that by what `forward` got, and adds to the `gradient` of the weights that have one.
import { multiply, multiplyFirstTransposed, part, Tensor } from "./tensor.js";

/** @typedef {import("./tensor.js").Part} Part */
/** @typedef {any[]} Tape */
/** @typedef {(name: string) => Tensor | null} Weights */
/**
 * @typedef {{ forward: (X: Tensor, tape?: Tape | null) => Tensor, backward: (dY: Tensor, tape: Tape) => Tensor }} Layer
 * @typedef {new (weights: Weights, eps?: number) => Layer} NormClass
 */

// The weights of a part of a model: `under(weights, "ffn")("dense1.weight")`. Where there is none of a name: null.
/** @type {(weights: Weights, part: string) => Weights} */
export const under = (weights, part) => (name) => weights(`${part}.${name}`);

// A weight that a layer cannot do without.
/** @param {Tensor | null} weight */
export function needed(weight) {
  if (!weight) throw new Error("the weights lack a layer of the model");
  return weight;
}

export class Linear {
  // `tied`: the weight of another layer, which this one shares.
  /** @param {Weights} weights @param {Tensor | null} tied */
  constructor(weights, tied = null) {
    this.weight = tied ?? needed(weights("weight")); // (outputs, inputs)
    this.bias = weights("bias");
  }
  // X (T, inputs) to (T, outputs).
  /** @param {Tensor} X @param {Tape | null} tape */
  forward(X, tape = null) {
    const Y = new Tensor(X.shape[0], this.weight.shape[0]);
    this.into(X, part(Y));
    tape?.push(X);
    return Y;
  }
  /** @param {Tensor} dY @param {Tape} tape */
  backward(dY, tape) {
    const X = tape.pop(),
      [outputs, inputs] = this.weight.shape,
      T = X.shape[0],
      dX = new Tensor(T, inputs);
    multiply(part(dY), part(this.weight), part(dX), T, outputs, inputs);
    const { gradient } = this.weight;
    if (gradient) multiplyFirstTransposed(part(dY), part(X), part(gradient), outputs, T, inputs, true);
    if (this.bias?.gradient) addSums(dY.data, this.bias.gradient.data);
    return dX;
  }
  // As `forward`, into rows that are there already.
  /** @param {Tensor} X @param {Part} to */
  into(X, to) {
    this.weight.times(X, to);
    if (this.bias) addRows(to, this.bias, X.shape[0]);
  }
}

/** @param {Part} to @param {Tensor} bias @param {number} rows */
function addRows({ place, stride }, bias, rows) {
  const floats = new Float32Array(bias.data.buffer),
    values = bias.data;
  for (let i = 0; i < rows; i++) {
    const start = place / 4 + i * stride;
    for (let j = 0; j < values.length; j++) floats[start + j] += values[j];
  }
}

/** @param {Float32Array} rows @param {Float32Array} sums */
function addSums(rows, sums) {
  const size = sums.length;
  for (let start = 0; start < rows.length; start += size) for (let j = 0; j < size; j++) sums[j] += rows[start + j];
}

export class Embedding {
  /** @param {Weights} weights */
  constructor(weights) {
    this.weight = needed(weights("weight")); // (V, h)
  }
  // Integers, T of them, to (T, h), times a factor.
  /** @param {number[] | Int32Array} tokens @param {Tape | null} tape */
  forward(tokens, factor = 1, tape = null) {
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
    tape?.push({ tokens, factor });
    return X;
  }
  // There is nothing before it: returns nothing.
  /** @param {Tensor} dX @param {Tape} tape */
  backward(dX, tape) {
    const { tokens, factor } = tape.pop(),
      h = this.weight.shape[1],
      from = dX.data,
      to = this.weight.gradient?.data;
    if (to)
      for (let i = 0; i < tokens.length; i++)
        for (let j = 0; j < h; j++) to[tokens[i] * h + j] += factor * from[i * h + j];
  }
}

export class LayerNorm {
  /** @param {Weights} weights */
  constructor(weights, eps = 1e-5) {
    this.weight = needed(weights("weight"));
    this.bias = weights("bias");
    this.eps = eps;
  }
  // X (T, h) to (T, h).
  /** @param {Tensor} X @param {Tape | null} tape */
  forward(X, tape = null) {
    tape?.push(X);
    const Y = new Tensor(...X.shape),
      h = X.columns;
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
  /** @param {Tensor} dY @param {Tape} tape */
  backward(dY, tape) {
    const X = /** @type {Tensor} */ (tape.pop()),
      h = X.columns,
      dX = new Tensor(...X.shape);
    const weight = this.weight.data,
      ofWeight = this.weight.gradient?.data,
      [x, dx, dy] = [X.data, dX.data, dY.data];
    for (let start = 0; start < x.length; start += h) {
      let mean = 0,
        variance = 0,
        sum = 0,
        product = 0; // of the gradient by the normed numbers, and those
      for (let j = 0; j < h; j++) mean += x[start + j] / h;
      for (let j = 0; j < h; j++) variance += (x[start + j] - mean) ** 2 / h;
      const factor = 1 / Math.sqrt(variance + this.eps);
      for (let j = 0; j < h; j++) {
        const normed = (x[start + j] - mean) * factor,
          slope = dy[start + j] * weight[j];
        sum += slope;
        product += slope * normed;
        if (ofWeight) ofWeight[j] += dy[start + j] * normed;
      }
      const pull = (factor * product) / h;
      for (let j = 0; j < h; j++)
        dx[start + j] = factor * (dy[start + j] * weight[j] - sum / h - (x[start + j] - mean) * pull);
    }
    if (this.bias?.gradient) addSums(dy, this.bias.gradient.data);
    return dX;
  }
}

// Without weights it is the norm of queries and keys. torch's eps, where none is named: that of float32.
export class RMSNorm {
  /** @param {Weights | null} weights */
  constructor(weights = null, eps = 2 ** -23) {
    this.weight = weights?.("weight") ?? null;
    this.eps = eps;
  }
  /** @param {Tensor} X @param {Tape | null} tape */
  forward(X, tape = null) {
    tape?.push(X);
    const Y = new Tensor(...X.shape);
    Y.data.set(X.data);
    this.rows(Y.data, X.columns);
    return Y;
  }
  /** @param {Tensor} dY @param {Tape} tape */
  backward(dY, tape) {
    const X = /** @type {Tensor} */ (tape.pop()),
      h = X.columns,
      dX = new Tensor(...X.shape);
    const weight = this.weight?.data,
      ofWeight = this.weight?.gradient?.data,
      [x, dx, dy] = [X.data, dX.data, dY.data];
    for (let start = 0; start < x.length; start += h) {
      let squares = 0,
        product = 0;
      for (let j = 0; j < h; j++) squares += x[start + j] ** 2;
      const factor = 1 / Math.sqrt(squares / h + this.eps);
      for (let j = 0; j < h; j++) {
        const normed = x[start + j] * factor;
        product += (weight ? weight[j] : 1) * dy[start + j] * normed;
        if (ofWeight) ofWeight[j] += dy[start + j] * normed;
      }
      const pull = (factor * product) / h;
      for (let j = 0; j < h; j++)
        dx[start + j] = factor * ((weight ? weight[j] : 1) * dy[start + j] - x[start + j] * pull);
    }
    return dX;
  }
  // In place, each `size` numbers of an array.
  /** @param {Float32Array} data @param {number} size */
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

// In place of a norm: none.
export class Identity {
  /** @param {Tensor} X */
  forward(X) {
    return X;
  }
  /** @param {Tensor} dY */
  backward(dY) {
    return dY;
  }
}

/** @type {Record<"layer" | "rms", NormClass>} */
export const NORMS = { layer: LayerNorm, rms: RMSNorm };

// X + Y, into Y.
/** @param {Tensor} X @param {Tensor} Y */
export function residual(X, Y) {
  const x = X.data,
    y = Y.data;
  for (let i = 0; i < y.length; i++) y[i] += x[i];
  return Y;
}
