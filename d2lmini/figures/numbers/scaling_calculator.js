// A scaling law L(N, D) = E + A N^-a + B D^-b: its terms, the best use of a budget, and where it says nothing.

/** @typedef {{ parameters: number[], tokens: number[] }} Ranges */
/** @typedef {Ranges & { name: string, floor: number, factors: number[], exponents: number[], unit: string, note: string }} Law */
/** @typedef {{ name: string, parameters: number, tokens: number, note: string }} Model */
/** @typedef {Record<"law" | "parameters" | "tokens", number> & { laws: Law[], models: Model[], limits: Ranges }} State */
/** @typedef {ReturnType<typeof reckon>} Found */

export const FAR = 100; // so far outside of the runs that a law was fitted to, it is not asked

export const inside = (/** @type {number} */ x, /** @type {number[]} */ [low, high]) =>
  Math.min(high, Math.max(low, x));
export const flops = (/** @type {number} */ N, /** @type {number} */ D) => 6 * N * D;

/** @type {(law: Law, N: number, D: number) => number[]} */
export const terms = ({ floor, factors: [A, B], exponents: [a, b] }, N, D) => [floor, A * N ** -a, B * D ** -b];

/** @type {(law: Law, N: number, D: number) => number} */
export const loss = (law, N, D) => terms(law, N, D).reduce((x, y) => x + y);

/**
 * The N and D of the lowest loss with C FLOPs, as scaling.compute_optimal.
 * @param {Law} law
 * @param {number} C
 */
export function optimum({ factors: [A, B], exponents: [a, b] }, C) {
  const best = (Math.log((a * A) / (b * B)) + b * Math.log(C / 6)) / (a + b);
  const N = Math.exp(Math.min(Math.max(best, 0), Math.log(C / 6)));
  return [N, C / 6 / N];
}

/**
 * The N nearest to the one wanted with which D, at C FLOPs, is within its limits too.
 * @param {Ranges} limits
 * @param {number} C
 * @param {number} N
 */
export function alongBudget({ parameters: [least, most], tokens: [few, many] }, C, N) {
  const low = Math.max(least, C / 6 / many);
  return inside(N, [low, Math.max(low, Math.min(most, C / 6 / few))]);
}

/**
 * Which of N and D is outside of the runs, by more than a factor.
 * @param {Law} law
 * @param {number} N
 * @param {number} D
 */
export const outside = ({ parameters, tokens }, N, D, factor = 1) =>
  Object.entries({ parameters: [N, ...parameters], tokens: [D, ...tokens] })
    .filter(([, [x, low, high]]) => x < low / factor || x > high * factor)
    .map(([key]) => key);

// All that is shown of a choice, as ScalingCalculator.reckon; `mine` and `ideals`: what of it and of the optimum is
// outside of the runs; `known`: whether the law says anything of the optimum; `chosen`: number of the model, or -1.
export function reckon(/** @type {State} */ { laws, models, law: at, parameters: N, tokens: D }) {
  const law = laws[at],
    C = flops(N, D),
    [bestN, bestD] = optimum(law, C);
  return {
    law,
    C,
    N,
    D,
    L: loss(law, N, D),
    bestN,
    bestD,
    least: loss(law, bestN, bestD),
    mine: outside(law, N, D),
    ideals: outside(law, bestN, bestD),
    known: !outside(law, bestN, bestD, FAR).length,
    chosen: models.findIndex((m) => m.parameters === N && m.tokens === D),
  };
}

export const cut = (/** @type {number} */ x) => Number(x.toPrecision(3)).toString();

// 1.4e12 as 1.4T
export function count(/** @type {number} */ x) {
  const at = Math.max(0, Math.min(4, Math.floor(Math.log10(Number(x.toPrecision(3))) / 3)));
  return at === 4 && x >= 1e15 ? power(x) : cut(x / 1000 ** at) + ["", "K", "M", "B", "T"][at];
}

// FLOPs as a power of ten
export function power(/** @type {number} */ x) {
  const [head, tail] = x.toExponential(2).split("e");
  return `${head} × 10${[...String(Number(tail))].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;
}
