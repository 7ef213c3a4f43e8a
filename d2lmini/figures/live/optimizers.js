// Optimizers as torch's, and what is done to gradients and rates before. Weights are tensors with a gradient.
import { lasting, Tensor } from "./tensor.js";

/** @typedef {Tensor & { gradient: Tensor }} Learned  a weight that learns */

// Adam; with `weight_decay` AdamW, by which matrices decay and biases and norms do not.
export class Adam {
  /** @param {Learned[]} weights */
  constructor(weights, { betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0 } = {}) {
    this.weights = weights;
    this.betas = betas;
    this.eps = eps;
    this.weight_decay = weight_decay;
    this.steps = 0;
    this.state = lasting(weights.map(({ shape }) => [Tensor.zeros(...shape), Tensor.zeros(...shape)])); // means, squares
  }
  /** @param {number} rate */
  step(rate) {
    const { eps, weight_decay } = this,
      [beta1, beta2] = this.betas;
    this.steps++;
    const pace = rate / (1 - beta1 ** this.steps),
      root = 1 / Math.sqrt(1 - beta2 ** this.steps);
    this.weights.forEach((tensor, n) => {
      const w = tensor.data,
        g = tensor.gradient.data,
        [m, v] = this.state[n].map(({ data }) => data);
      const kept = tensor.shape.length > 1 ? 1 - rate * weight_decay : 1;
      for (let i = 0; i < w.length; i++) {
        const slope = g[i],
          mean = beta1 * m[i] + (1 - beta1) * slope,
          square = beta2 * v[i] + (1 - beta2) * slope * slope;
        m[i] = mean;
        v[i] = square;
        w[i] = kept * w[i] - (pace * mean) / (Math.sqrt(square) * root + eps);
      }
    });
  }
}

export class SGD {
  /** @param {Learned[]} weights */
  constructor(weights, { momentum = 0, weight_decay = 0 } = {}) {
    this.weights = weights;
    this.momentum = momentum;
    this.weight_decay = weight_decay;
    this.steps = 0;
    this.state = lasting(weights.map(({ shape }) => [Tensor.zeros(...shape)]));
  }
  /** @param {number} rate */
  step(rate) {
    const { momentum } = this;
    this.steps++;
    this.weights.forEach((tensor, n) => {
      const w = tensor.data,
        g = tensor.gradient.data,
        m = this.state[n][0].data;
      const decay = tensor.shape.length > 1 ? this.weight_decay : 0;
      for (let i = 0; i < w.length; i++) {
        m[i] = momentum * m[i] + g[i] + decay * w[i];
        w[i] -= rate * m[i];
      }
    });
  }
}

/** @type {Record<string, (weights: Learned[], options: any) => Adam | SGD>} */
export const OPTIMIZERS = {
  adam: (weights, { betas, eps }) => new Adam(weights, { betas, eps }),
  adamw: (weights, { betas, eps, weight_decay = 0.01 }) => new Adam(weights, { betas, eps, weight_decay }),
  sgd: (weights, { momentum, weight_decay }) => new SGD(weights, { momentum, weight_decay }),
};

// The sum of the squares of gradients.
/** @param {Learned} tensor */
export function squaredNorm(tensor) {
  const g = tensor.gradient.data;
  let sum = 0;
  for (let i = 0; i < g.length; i++) sum += g[i] * g[i];
  return sum;
}

// Shrinks all gradients so that their norm is at most so much, as `clip_grad_norm_`.
/** @param {Learned[]} weights @param {number} norm @param {number} most */
export function clipGradients(weights, norm, most) {
  const factor = most / (norm + 1e-6);
  if (!(factor < 1)) return;
  for (const tensor of weights) {
    const g = tensor.gradient.data;
    for (let i = 0; i < g.length; i++) g[i] *= factor;
  }
}

// The rate of a step (from 0), which grows in a line over the first `warmup` of them.
/** @param {number} rate @param {number} step @param {number} warmup */
export const warmedUp = (rate, step, warmup) => rate * Math.min(1, (step + 1) / Math.max(1, warmup));
