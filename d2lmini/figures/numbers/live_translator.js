// A translator's attention over chosen heads, pieces as words, and what is said of experiments with it.

export const HEADS = { encoder: "encoder", own: "decoder", cross: "cross" };

/** @param {string} kind @param {number} block @param {number} head */
export const headKey = (kind, block, head) => `${kind} ${block} ${head}`;

/**
 * The factors of all heads: 0 for those that are off, by their keys; null where none is.
 * @param {Iterable<string>} off
 * @param {number} blocks
 * @param {number} heads
 */
export function factorsOf(off, blocks, heads) {
  const gone = new Set(off);
  if (!gone.size) return null;
  const range = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => i);
  const of = (/** @type {string} */ kind) =>
    range(blocks).map((b) => range(heads).map((h) => (gone.has(headKey(kind, b, h)) ? 0 : 1)));
  return { encoder: of("encoder"), own: of("own"), cross: of("cross") };
}

/**
 * The switch beside number i, in rows of the heads of a block; -1 where the row ends.
 * @param {number} i
 * @param {number} down
 * @param {number} right
 * @param {number} width
 */
export const switchBeside = (i, down, right, width) =>
  right && Math.floor((i + right) / width) !== Math.floor(i / width) ? -1 : i + down * width + right;

/**
 * Mean attention to each of S source tokens over the chosen block and head.
 * @param {ArrayLike<number>[]} weights  of each block (heads, S)
 * @param {number} S
 * @param {number | "all"} block
 * @param {number | "all"} head
 */
export function meanLooks(weights, S, block, head) {
  const among = (/** @type {number | "all"} */ chosen, n) =>
    chosen === "all" ? Array.from({ length: n }, (_, i) => i) : [chosen];
  return Array.from({ length: S }, (_, s) => {
    const all = among(block, weights.length).flatMap((b) =>
      among(head, weights[b].length / S).map((h) => weights[b][h * S + s]),
    );
    return all.reduce((sum, weight) => sum + weight, 0) / all.length;
  });
}

// In a piece, ▁ is the space before a word.
/** @param {string} piece */
export const pieceText = (piece) => piece.replaceAll("▁", "") || "▁";

/**
 * Whether a piece goes on with the word before it, where `pieces` mark the spaces.
 * @param {string} piece
 * @param {string[]} pieces
 */
export const goesOn = (piece, pieces) =>
  pieces.some((one) => one.startsWith("▁")) && !piece.startsWith("▁") && !/^<\w+>$/.test(piece);

/** @param {number} unknown */
export function unknownWords(unknown) {
  const some = unknown === 1 ? "one of these words" : `${unknown} of these words`;
  return unknown ? `The model does not know ${some}: it reads <unk> there.` : "";
}

/**
 * @param {number} value
 * @param {"exact" | "bleu"} metric
 * @param {number} sentences
 */
export const scoreText = (value, metric, sentences) =>
  metric === "exact" ? `${value} of ${sentences} exact` : `BLEU ${value.toFixed(1)}, ${sentences} sentences`;

/**
 * The best of a beam beside what greedy decoding found, by their log-probabilities.
 * @param {number} best
 * @param {number} greedy
 * @param {number} beamSize
 */
export function beamText(best, greedy, beamSize) {
  const gain = best - greedy;
  const by =
    Math.abs(gain) < 1e-4 ? "equals that" : `is ${Math.abs(gain).toFixed(2)} ${gain > 0 ? "above" : "below"} that`;
  return `The log-probability of the best of a beam of ${beamSize} ${by} of the greedy one.`;
}

/** @param {number} change */
export const changeText = (change) => (change < 1e-4 ? (change ? change.toExponential(0) : "0") : change.toFixed(2));

/**
 * How far scores moved when the words from number `at` on became others.
 * @param {number} at
 * @param {ArrayLike<number>} changes
 */
export function laterText(at, changes) {
  const most = (/** @type {number} */ from, to = changes.length) =>
    changeText(Math.max(0, ...Array.from(changes).slice(from, to)));
  const later = at + 1 < changes.length ? `, those of later words by up to ${most(at + 1)}.` : ".";
  return (
    `From word ${at + 1} on, all words are other ones. The scores that choose words 1 to ${at + 1} move by ` +
    `${most(0, at + 1)} at most${later}`
  );
}
