// Guesses of masked words: what a model has of a place, and where a reader's guess stands among them.
const NONE = 65535, // as the index of a name; a probability travels as so many parts of it
  SCALES = [0.05, 0.1, 0.2, 0.5];

/**
 * Of each place `top` guesses, indices of names and parts of 1, and the parts of the true token (or nothing).
 * @typedef {{ ids: ArrayLike<number>, parts: ArrayLike<number>, truth: ArrayLike<number> }} View
 *
 * The guesses of one place, the likeliest first; of the true token its place among them, -1 if it is not there, and its
 * probability, null if that is not known.
 * @typedef {{ list: [string, number][], place: number, p: number | null }} Look
 */

/**
 * @param {View} view
 * @param {{ names: string[], top: number, tokens: string[], position: number }} of
 * @returns {Look}
 */
export function looked({ ids, parts, truth }, { names, top, tokens, position }) {
  const at = position * top,
    list = /** @type {[string, number][]} */ ([]);
  for (let i = at; i < at + top && ids[i] !== NONE; i++) list.push([names[ids[i]], parts[i] / NONE]);
  const place = list.findIndex(([name]) => name === tokens[position]);
  return { list, place, p: truth.length && list.length ? truth[position] / NONE : (list[place]?.[1] ?? null) };
}

/**
 * Where a scale ends that has room for all probabilities.
 * @param {Look[]} looks
 */
export function scaleEnd(looks) {
  const most = Math.max(...looks.flatMap(({ list, p }) => [p ?? 0, ...list.map(([, share]) => share)]));
  return SCALES.find((end) => end >= most) ?? 1;
}

const plain = (/** @type {string} */ word) =>
  word
    .replace(/^(##|▁|Ġ)/, "")
    .trim()
    .toLowerCase();

/**
 * The place of a word among guesses, whatever its case and the mark of a piece: -1 if it is not there, null for no word.
 * @param {Look["list"]} list
 * @param {string} word
 */
export function placeOf(list, word) {
  const own = plain(word);
  return own ? list.findIndex(([name]) => plain(name) === own) : null;
}
