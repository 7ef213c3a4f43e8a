// What is done to each number: the activations of models/named_parts.py; and softmax.
import { Tensor } from "./tensor.js";

/** @typedef {((X: Tensor) => Tensor) & { backward: (dY: Tensor, X: Tensor) => Tensor }} Activation */

// A function of each number; `backward(dY, X)` makes dX of dY, in place, by the slope at X.
/** @param {(x: number) => number} f @param {(x: number) => number} slope @returns {Activation} */
function map(f, slope) {
  const forward = (/** @type {Tensor} */ X) => {
    const Y = new Tensor(...X.shape),
      from = X.data,
      to = Y.data;
    for (let i = 0; i < from.length; i++) to[i] = f(from[i]);
    return Y;
  };
  forward.backward = (/** @type {Tensor} */ dY, /** @type {Tensor} */ X) => {
    const at = X.data,
      d = dY.data;
    for (let i = 0; i < d.length; i++) d[i] *= slope(at[i]);
    return dY;
  };
  return forward;
}

// The error function, to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26); `power` is e^(-x^2).
function erf(x, power = Math.exp(-x * x)) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return x < 0 ? poly * power - 1 : 1 - poly * power;
}

function geluSlope(x) {
  const power = Math.exp((-x * x) / 2);
  return 0.5 * (1 + erf(x * Math.SQRT1_2, power)) + (x * power) / Math.sqrt(2 * Math.PI);
}

const ROOT = Math.sqrt(2 / Math.PI);
const tanh = (x) => 1 - 2 / (Math.exp(2 * x) + 1); // Math.tanh takes four times as long
const geluTanh = (x) => 0.5 * x * (1 + tanh(ROOT * (x + 0.044715 * x * x * x)));
function geluTanhSlope(x) {
  const t = tanh(ROOT * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t + x * (1 - t * t) * ROOT * (1 + 0.134145 * x * x));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

const ACTIVATIONS = {
  relu: map(
    (x) => Math.max(x, 0),
    (x) => (x > 0 ? 1 : 0),
  ),
  gelu: map((x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)), geluSlope),
  gelu_tanh: map(geluTanh, geluTanhSlope),
  silu: map(
    (x) => x * sigmoid(x),
    (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))),
  ),
  squared_relu: map(
    (x) => (x < 0 ? 0 : x * x),
    (x) => (x < 0 ? 0 : 2 * x),
  ),
};

// An activation by its name. Throws an Error where there is none.
/** @param {string} name @returns {Activation} */
export function activationOf(name) {
  if (!Object.hasOwn(ACTIVATIONS, name)) throw new Error(`the page does not know the activation ${name}`);
  return ACTIVATIONS[name];
}

// Probabilities of scores, in place: `row` is a Float32Array, of which those from `first` to before `end` count; the
// others become 0.
/** @param {Float32Array} row */
export function softmaxRow(row, first = 0, end = row.length) {
  let top = Number.NEGATIVE_INFINITY,
    total = 0;
  for (let j = first; j < end; j++) top = Math.max(top, row[j]);
  row.fill(0, 0, Math.min(first, row.length));
  for (let j = first; j < end; j++) total += row[j] = Math.exp(row[j] - top);
  for (let j = first; j < end; j++) row[j] /= total;
  row.fill(0, Math.max(end, 0));
  return row;
}

/** @param {Float32Array | number[]} scores */
export function logSoftmax(scores) {
  let top = Number.NEGATIVE_INFINITY,
    total = 0;
  for (const score of scores) top = Math.max(top, score);
  for (const score of scores) total += Math.exp(score - top);
  return Float64Array.from(scores, (score) => score - top - Math.log(total));
}
