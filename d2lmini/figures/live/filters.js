// From scores to a token: the filters of decoding/filters.py, and drawing. It needs no memory of tensors, so that a
// figure can have it on the page's side too.

// Random numbers from 0 to 1 by a seed (Mulberry32): the same draws on every machine, not torch's.
/** @param {number} seed */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// The first `length` of an array in another order, in place (Fisher and Yates).
/** @template T @param {T[]} array @param {() => number} random */
export function shuffled(array, random, length = array.length) {
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [array[i], array[j]] = [array[j], array[i]];
  }
  return array;
}

// The order of numbers, the largest first, the first of equals first.
/** @param {ArrayLike<number>} numbers */
export const ranked = (numbers) => Array.from(numbers, (_, i) => i).sort((a, b) => numbers[b] - numbers[a] || a - b);

/**
 * @typedef {{ temperature?: number, top_k?: number | null, top_p?: number | null, min_p?: number | null }} Filters
 */

// What the next token is drawn from: probabilities of scores after temperature, top_k, top_p and min_p, in this order;
// each is null or missing for none.
/** @param {ArrayLike<number>} scores @param {Filters} filters */
export function filtered(scores, { temperature = 1, top_k = null, top_p = null, min_p = null } = {}) {
  const order = ranked(scores),
    top = scores[order[0]];
  if (temperature === 0) return Float64Array.from(scores, (_, i) => (i === order[0] ? 1 : 0));
  const logits = Float64Array.from(scores, (score) => (score - top) / temperature);
  let kept = new Set(top_k ? order.slice(0, top_k) : order);
  const powers = () => {
    const values = Float64Array.from(logits, (logit, i) => (kept.has(i) ? Math.exp(logit) : 0));
    const total = values.reduce((a, b) => a + b, 0);
    return values.map((value) => value / total);
  };
  if (top_p && top_p < 1) {
    const shares = powers();
    let before = 0; // what the likelier ones have
    kept = new Set(
      order.filter((i) => {
        const enough = before > 0 && before >= top_p - 4 * 2 ** -23; // the first is always kept
        before += shares[i];
        return !enough && shares[i] > 0;
      }),
    );
  }
  if (min_p) kept = new Set([...kept].filter((i) => logits[i] >= Math.log(min_p)));
  return powers();
}

// An index, drawn by probabilities.
/** @param {ArrayLike<number>} probabilities @param {() => number} random */
export function drawn(probabilities, random) {
  let left = random();
  let last = 0;
  for (let i = 0; i < probabilities.length; i++) {
    if (!probabilities[i]) continue;
    last = i;
    left -= probabilities[i];
    if (left < 0) return i;
  }
  return last;
}
