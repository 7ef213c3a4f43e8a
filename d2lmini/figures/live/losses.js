// What is minimised: the mean cross-entropy of the tokens that are to be guessed.
export const IGNORE_INDEX = -100;

/** @typedef {import("./tensor.js").Tensor} Tensor */

// Of scores (B * T, V) and the token at each place, or -100 where none is to be guessed: {loss, count}, in nats; a loss
// of 0 where there is none. In place the scores become the gradient of the loss by them.
/** @param {Tensor} scores @param {Int32Array | number[]} targets */
export function crossEntropy(scores, targets) {
  const data = scores.data,
    V = scores.shape[1];
  let count = 0,
    sum = 0;
  for (const target of targets) if (target !== IGNORE_INDEX) count++;
  for (let i = 0, start = 0; i < targets.length; i++, start += V) {
    const end = start + V;
    if (targets[i] === IGNORE_INDEX) {
      data.fill(0, start, end);
      continue;
    }
    let top = data[start],
      total = 0;
    for (let j = start + 1; j < end; j++) if (data[j] > top) top = data[j];
    const score = data[start + targets[i]] - top;
    for (let j = start; j < end; j++) {
      const power = Math.exp(data[j] - top);
      data[j] = power;
      total += power;
    }
    sum += Math.log(total) - score;
    const factor = 1 / (total * count);
    for (let j = start; j < end; j++) data[j] *= factor;
    data[start + targets[i]] -= 1 / count;
  }
  return { loss: count ? sum / count : 0, count };
}

// The token of the highest score at each place, the first of equals.
/** @param {Tensor} scores */
export function bestTokens(scores) {
  const [places, V] = scores.shape,
    data = scores.data,
    best = new Int32Array(places);
  for (let i = 0; i < places; i++) for (let j = 1; j < V; j++) if (data[i * V + j] > data[i * V + best[i]]) best[i] = j;
  return best;
}
