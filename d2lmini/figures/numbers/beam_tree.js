// A beam search as a tree: which tokens a place of it ends, where a sequence is, and where two sequences part.

/**
 * A continuation: the place of its parent in the column before, its token, the log-probability so far, its fate.
 * @typedef {[number, string, number, string]} Continuation
 * @typedef {[number, number]} Place column, from 1 (0: the start), and rank in it, from 0
 * @typedef {{ columns: Continuation[][], best: string[], score: number }} Search
 */

/**
 * The places of the sequence that ends at a place.
 * @param {Continuation[][]} columns
 * @param {Place} place
 */
export function path(columns, [t, i]) {
  const places = /** @type {Place[]} */ ([]);
  for (; t > 0; t--) {
    places.unshift([t, i]);
    i = columns[t - 1][i][0];
  }
  return places;
}

/**
 * The tokens of places.
 * @param {Continuation[][]} columns
 * @param {Place[]} places
 */
export const tokensAt = (columns, places) => places.map(([t, i]) => columns[t - 1][i][1]);

/**
 * What each token adds to the log-probability along a path.
 * @param {Continuation[][]} columns
 * @param {Place[]} places
 */
export const gains = (columns, places) =>
  places.map(([t, i]) => columns[t - 1][i][2] - (t > 1 ? columns[t - 2][columns[t - 1][i][0]][2] : 0));

/**
 * The places of the sequence `tokens` in the tree, none if it is not there.
 * @param {Continuation[][]} columns
 * @param {string[]} tokens
 */
export function find(columns, tokens) {
  const paths = (columns[tokens.length - 1] ?? []).map((_, i) => path(columns, [tokens.length, i]));
  return paths.find((places) => tokensAt(columns, places).every((token, n) => token === tokens[n])) ?? [];
}

/**
 * Where the beginnings of a sequence are in the tree, as far as they are there.
 * @param {Continuation[][]} columns
 * @param {string[]} tokens
 */
export const beginnings = (columns, tokens) =>
  tokens.flatMap((_, n) => find(columns, tokens.slice(0, n + 1)).slice(-1));

/**
 * Counted from 1, the first token that differs; null where none does.
 * @param {string[]} one
 * @param {string[]} other
 */
export function parting(one, other) {
  const same = one.findIndex((token, i) => token !== other[i]);
  if (same >= 0) return same + 1;
  return one.length === other.length ? null : one.length + 1;
}

/**
 * Tokens as a text: some tokenizers mark the begin of a word.
 * @param {string[]} tokens
 */
export const spelled = (tokens) =>
  tokens.some((token) => token.includes("▁")) ? tokens.join("").replaceAll("▁", " ").trim() : tokens.join(" ");
