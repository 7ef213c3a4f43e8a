// What is done to each number: the activations of models/choices.py; and softmax.
import { Tensor } from "./tensor.js";

const map = (f) => (X) => {
  const Y = new Tensor(...X.shape),
    from = X.data,
    to = Y.data;
  for (let i = 0; i < from.length; i++) to[i] = f(from[i]);
  return Y;
};

// The error function, to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26).
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - poly * Math.exp(-x * x));
}

const ACTIVATIONS = {
  relu: map((x) => Math.max(x, 0)),
  gelu: map((x) => 0.5 * x * (1 + erf(x / Math.SQRT2))),
  gelu_tanh: map((x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))),
  squared_relu: map((x) => Math.max(x, 0) ** 2),
};

// An activation by its name. Throws an Error where there is none, as for networks with a gate.
export function activationOf(name) {
  if (!Object.hasOwn(ACTIVATIONS, name)) throw new Error(`the page does not know the activation ${name}`);
  return ACTIVATIONS[name];
}

// Probabilities of scores, in place: `row` is a Float32Array, of which those from `first` to before `end` count; the
// others become 0.
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

export function logSoftmax(scores) {
  let top = Number.NEGATIVE_INFINITY,
    total = 0;
  for (const score of scores) top = Math.max(top, score);
  for (const score of scores) total += Math.exp(score - top);
  return Float64Array.from(scores, (score) => score - top - Math.log(total));
}
