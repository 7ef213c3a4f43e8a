// Speculative decoding of characters: what draft and target say, and passes decision by decision.
import { randomNumbers } from "../live/filters.js";

/**
 * `target` and `draft` count how often one of V characters follows two, and one: (V, V, V) and (V, V).
 * @typedef {{ V: number, target: ArrayLike<number>, draft: ArrayLike<number> }} Models
 * @typedef {"draft" | "accept" | "reject" | "replace" | "add"} Kind
 *
 * A decision on character `x` at place `i` by the random number `u`: drawn `from` shares, or accepted below `limit`.
 * @typedef {{ kind: Kind, i: number, p: number[], q: number[], u: number, x: number, from?: number[], limit?: number }} Step
 * @typedef {{ steps: Step[], drafted: number[], written: number[] }} Pass
 */

function scaled(/** @type {number[]} */ numbers) {
  const sum = numbers.reduce((a, b) => a + b, 0);
  return numbers.map((number) => number / sum);
}

/**
 * What target (p) and draft (q) say comes after a text.
 * @param {Models} models
 * @param {number[]} text
 */
export function distributions({ V, target, draft }, text) {
  const [a, b] = text.slice(-2);
  const row = (counts, at) => scaled(Array.from({ length: V }, (_, x) => counts[at * V + x]));
  return { p: row(target, a * V + b), q: row(draft, b) };
}

/**
 * With which probability a proposal is accepted: what p and q have in common.
 * @param {{ p: number[], q: number[] }} both
 */
export const overlap = ({ p, q }) => p.reduce((sum, share, x) => sum + Math.min(share, q[x]), 0);

// The first character at which the sum of shares is above u.
function pick(/** @type {number[]} */ shares, /** @type {number} */ u) {
  let sum = 0;
  for (const [x, share] of shares.entries()) {
    sum += share;
    if (sum > u) return x;
  }
  return shares.findLastIndex((share) => share > 0); // the sum may end a rounding below 1
}

/**
 * A pass after a text.
 * @param {Models} models
 * @param {number[]} text
 * @param {number} n
 * @param {() => number} random
 * @returns {Pass}
 */
export function pass(models, text, n, random) {
  const steps = /** @type {Step[]} */ ([]),
    drafted = /** @type {number[]} */ ([]);
  const draw = (kind, i, both, from) => {
    const u = random(),
      x = pick(from, u);
    steps.push({ kind, i, ...both, from, u, x });
    return x;
  };
  for (let i = 0; i < n; i++) {
    const both = distributions(models, [...text, ...drafted]);
    drafted.push(draw("draft", i, both, both.q));
  }
  for (const { i, p, q, x } of steps.slice()) {
    const u = random(),
      accepted = u < p[x] / q[x];
    steps.push({ kind: accepted ? "accept" : "reject", i, p, q, u, x, limit: Math.min(1, p[x] / q[x]) });
    if (accepted) continue;
    const rest = scaled(p.map((share, other) => Math.max(share - q[other], 0)));
    return { steps, drafted, written: [...drafted.slice(0, i), draw("replace", i, { p, q }, rest)] };
  }
  const both = distributions(models, [...text, ...drafted]);
  return { steps, drafted, written: [...drafted, draw("add", n, both, both.p)] };
}

/**
 * Passes one after the other, each with the `text` before it.
 * @param {Models} models
 * @param {number[]} prompt
 * @param {number} n
 * @param {number} seed
 * @param {number} count
 */
export function passes(models, prompt, n, seed, count) {
  const random = randomNumbers(seed);
  let text = prompt;
  return Array.from({ length: count }, () => {
    const one = { text, ...pass(models, text, n, random) };
    text = [...text, ...one.written];
    return one;
  });
}
