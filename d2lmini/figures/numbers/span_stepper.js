// Span corruption: the rule of corrupt_spans and restore_spans, and noise that was drawn before.

/** @typedef {{ text: string, kind: "kept" | "noise" | "sentinel" }} Token */

/**
 * Each span of noise becomes a sentinel in the input; the target has the sentinel and what stood there, and a last
 * sentinel.
 * @param {string[]} words
 * @param {number[]} noise 0 and 1
 * @param {string[]} sentinels
 */
export function corrupt(words, noise, sentinels) {
  const input = /** @type {Token[]} */ ([]),
    target = /** @type {Token[]} */ ([]);
  let spans = 0;
  const mark = () => /** @type {Token} */ ({ text: sentinels[spans], kind: "sentinel" });
  words.forEach((text, i) => {
    if (noise[i] && !noise[i - 1]) {
      input.push(mark());
      target.push(mark());
      spans++;
    }
    if (noise[i]) target.push({ text, kind: "noise" });
    else input.push({ text, kind: "kept" });
  });
  target.push(mark());
  return { input, target, spans };
}

/**
 * What stands behind a sentinel in the target takes its place in the input.
 * @param {Token[]} input
 * @param {Token[]} target
 */
export function restore(input, target) {
  const behind = /** @type {Map<string, Token[]>} */ (new Map());
  let list = /** @type {Token[]} */ ([]);
  for (const token of target) {
    if (token.kind === "sentinel") {
      list = [];
      behind.set(token.text, list);
    } else list.push(token);
  }
  return input.flatMap((token) => (token.kind === "sentinel" ? (behind.get(token.text) ?? []) : [token]));
}

/**
 * The noise of draw `n` of a text of T words, as a text of 0 and 1: of packed bits, the highest of a byte first.
 * @param {ArrayLike<number>} bytes
 * @param {number} T
 * @param {number} n
 */
export const drawnNoise = (bytes, T, n) =>
  Array.from({ length: T }, (_, i) => (bytes[(n * T + i) >> 3] >> (7 - ((n * T + i) & 7))) & 1).join("");
