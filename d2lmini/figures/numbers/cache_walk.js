// Generation token by token: which scores are computed when, and what that costs, with and without a cache.

/**
 * @typedef {"now" | "again" | "before" | "masked" | "later"} Mark
 * @typedef {{ prompt: number, layers: number, heads: number, size: number }} Sizes of a prompt and of a model
 */

/**
 * When the keys of T tokens are computed: of their queries too.
 * @param {{ prompt: number, step: number, cache: boolean }} state
 * @param {number} T
 */
export function tokenMarks({ prompt, step, cache }, T) {
  const length = prompt + step,
    fresh = step ? length - 1 : 0; // all from here on are new
  const mark = (t) => /** @type {Mark} */ (t >= length ? "later" : t >= fresh ? "now" : cache ? "before" : "again");
  return Array.from({ length: T }, (_, t) => mark(t));
}

/**
 * When scores are computed, a row for each query.
 * @param {Mark[]} tokens
 */
export const scoreMarks = (tokens) =>
  tokens.map((mark, t) => tokens.map((_, s) => (mark !== "later" && s > t ? "masked" : mark)));

/**
 * What a step costs, and all steps so far.
 * @param {Sizes} sizes
 * @param {number} step
 * @param {boolean} cache
 * @returns {{ tokens: number, scores: number, kept: number, tokens_so_far: number, scores_so_far: number }}
 */
export function counts(sizes, step, cache) {
  const { prompt, layers, heads, size } = sizes,
    length = prompt + step,
    tokens = cache && step ? 1 : length,
    old = length - tokens;
  const before = step ? counts(sizes, step - 1, cache) : { tokens_so_far: 0, scores_so_far: 0 };
  const scores = (layers * heads * (length * (length + 1) - old * (old + 1))) / 2;
  return {
    tokens,
    scores,
    kept: cache ? 2 * layers * heads * size * length : 0,
    tokens_so_far: before.tokens_so_far + tokens,
    scores_so_far: before.scores_so_far + scores,
  };
}
