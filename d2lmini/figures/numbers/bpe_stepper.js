// Byte-pair encoding: the merges of a text are learned and made, on ids. White space is what Python's str.isspace says.
const WHITE = /^(?!\ufeff)[\s\x1c-\x1f\x85]$/u;

export const LONGEST = 2000; // of a text, in code points: the rest is left out

/**
 * Two ids, the id of what they become, and how often they stood side by side.
 * @typedef {[number, number, number, number]} Merge
 *
 * `names` of all ids, of which the first are `letters`; the text in ids at the `start`; and before each merge and in the
 * end the numbers of different tokens in `used` and of tokens (`length`).
 * @typedef {{ letters: number, names: string[], start: number[], merges: Merge[], used: number[], length: number[] }}
 *   Learned
 */

/**
 * Whether nothing is joined on behind a token: it ends in white space.
 * @param {string} token
 */
export const closes = (token) => WHITE.test([...token].at(-1) ?? "");

/**
 * Every occurrence of a pair, from left to right, becomes one token; what is no id stays.
 * @param {(number | string)[]} ids
 * @param {Merge} merge
 */
export function join(ids, [a, b, made]) {
  const out = /** @type {(number | string)[]} */ ([]);
  for (let i = 0; i < ids.length; i++) {
    const pair = ids[i] === a && ids[i + 1] === b;
    out.push(pair ? made : ids[i]);
    if (pair) i++;
  }
  return out;
}

// How often pairs of neighbours occur, by a number of the pair: the smaller one has the lower ids.
function countPairs(ids, names) {
  const counts = /** @type {Map<number, number>} */ (new Map()),
    shut = names.map(closes);
  for (let i = 0; i + 1 < ids.length; i++) {
    if (shut[ids[i]]) continue;
    const key = ids[i] * 65536 + ids[i + 1];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
const unkey = (key) => [Math.floor(key / 65536), key % 65536];

/**
 * Pairs of neighbours [left, right, times]: the most frequent first, among equals the lowest ids.
 * @param {(number | string)[]} ids
 * @param {string[]} names
 */
export const rankedPairs = (ids, names) =>
  [...countPairs(ids, names)].sort(([a, n], [b, m]) => m - n || a - b).map(([key, count]) => [...unkey(key), count]);

/**
 * All merges of a text, in which line ends of any kind are a line feed.
 * @param {string} text
 * @returns {Learned}
 */
export function learn(text) {
  const symbols = [...text.replace(/\r\n?/g, "\n")].slice(0, LONGEST),
    names = [...new Set(symbols)].sort((a, b) => Number(a.codePointAt(0)) - Number(b.codePointAt(0)));
  const known = new Map(names.map((name, i) => [name, i])),
    start = symbols.map((c) => /** @type {number} */ (known.get(c))),
    letters = names.length;
  const [merges, used, length] = [
    /** @type {Merge[]} */ ([]),
    /** @type {number[]} */ ([]),
    /** @type {number[]} */ ([]),
  ];
  for (let ids = /** @type {(number | string)[]} */ (start); ; ids = join(ids, merges[merges.length - 1])) {
    used.push(new Set(ids).size);
    length.push(ids.length);
    let best = -1,
      most = 0;
    for (const [key, count] of countPairs(ids, names))
      if (count > most || (count === most && key < best)) [best, most] = [key, count];
    if (!most) return { letters, names, start, merges, used, length };
    const [a, b] = unkey(best),
      name = names[a] + names[b];
    const made = known.get(name) ?? names.push(name) - 1; // two merges may give one token
    known.set(name, made);
    merges.push([a, b, made, most]);
  }
}

/**
 * A word, with a space behind it, after merges; letters that the text does not have stay letters.
 * @param {string} word
 * @param {string[]} names
 * @param {Merge[]} merges
 */
export function split(word, names, merges) {
  const letters = [...(word && !closes(word) ? word + " " : word)].map((c) =>
    names.includes(c) ? names.indexOf(c) : c,
  );
  return merges.reduce(join, /** @type {(number | string)[]} */ (letters));
}
