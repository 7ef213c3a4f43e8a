// A sentence of which a piece is hidden and others are changed, and what is said of the beliefs about the hidden one.

/**
 * @typedef {{ ids: number[], piece: string }} Slot  what stands where the sentence has one piece
 * @typedef {{ ids: number[], pieces: string[], mask: number, unknown: boolean }} Read  a sentence with [CLS] and [SEP],
 *   as live/guess.js tells it
 * @typedef {Read & { now: Slot[], hidden: number, changed: number, mode: "hide" | "change" }} Sentence  what stands
 *   there `now`, the hidden piece and the one that may be changed, and what a press does
 * @typedef {{ name: string, title: string, causal: boolean, colour: string, on: boolean }} View  of a model
 * @typedef {{ view: View, slots: Slot[], after: boolean }} Wanted  a belief
 * @typedef {{ best: { ids: number[], pieces: string[], p: number[] }, vocabulary: number,
 *   truth: { piece: string, p: number, rank: number }, looks: { size: number[], weights: Float32Array } }} Found  a
 *   belief, as live/guess.js tells it
 */

/**
 * What stood at first at each place.
 * @param {{ ids: number[], pieces: string[] }} sentence
 * @returns {Slot[]}
 */
export const slotsOf = ({ ids, pieces }) => pieces.slice(1, -1).map((piece, i) => ({ ids: [ids[i + 1]], piece }));

/**
 * A place beside number i, before it where there is one.
 * @param {number} i
 * @param {number} count
 */
export const placeBeside = (i, count) => (i > 0 ? i - 1 : Math.min(1, count - 1));

/**
 * A sentence that was just read, with a piece hidden: the middle one where none is named.
 * @param {Read} read
 * @param {number} [hidden]
 * @returns {Sentence}
 */
export function opened(read, hidden) {
  const now = slotsOf(read),
    place = hidden ?? Math.floor(now.length / 2);
  return { ...read, now, hidden: place, changed: placeBeside(place, now.length), mode: "hide" };
}

/** @param {Sentence} sentence @param {number} i */
export const isChanged = ({ now, pieces }, i) => now[i].piece !== pieces[i + 1];

/** @param {Sentence} sentence */
export const anyChanged = (sentence) => sentence.now.some((_, i) => i !== sentence.hidden && isChanged(sentence, i));

/**
 * The beliefs of a model that are shown: before any change, and after.
 * @param {Sentence} sentence
 * @param {View} view
 * @returns {Wanted[]}
 */
export const wantedOf = (sentence, view) => [
  { view, slots: slotsOf(sentence), after: false },
  ...(anyChanged(sentence) ? [{ view, slots: sentence.now, after: true }] : []),
];

/**
 * How the button of a place looks and is called.
 * @param {Sentence} sentence
 * @param {number} i
 */
export function slotLook(sentence, i) {
  const { piece } = sentence.now[i],
    hidden = i === sentence.hidden,
    chosen = sentence.mode === "change" && i === sentence.changed;
  return {
    text: hidden ? "[MASK]" : piece,
    label:
      (hidden ? `[MASK], hidden: ${sentence.pieces[i + 1]}` : piece) +
      `, piece ${i + 1}${chosen ? ", to be changed" : ""}`,
    hidden,
    style:
      (isChanged(sentence, i) && !hidden ? "text-decoration: underline; " : "") + (chosen ? "border: 2px dashed" : ""),
  };
}

/**
 * The ids with pieces of `slots`, of which some are hidden, and the place of the first of these.
 * @param {{ ids: number[], mask: number }} sentence
 * @param {Slot[]} slots
 * @param {number[]} hidden
 */
export function masked({ ids, mask }, slots, hidden) {
  const shown = slots.map((slot, i) => (hidden.includes(i) ? [mask] : slot.ids));
  return {
    ids: [ids[0], ...shown.flat(), ids[ids.length - 1]],
    place: 1 + shown.slice(0, hidden[0]).flat().length,
  };
}

/**
 * A head's weights, summed over the ids of each slot, with those of [CLS] and [SEP]: a row may end before.
 * @param {ArrayLike<number>} row
 * @param {Slot[]} slots
 * @param {number} hidden
 */
export function sharesOf(row, slots, hidden) {
  const all = Array.from(row);
  let start = 0;
  return [1, ...slots.map(({ ids }, i) => (i === hidden ? 1 : ids.length)), 1].map((size) => {
    start += size;
    return all.slice(start - size, start).reduce((a, b) => a + b, 0);
  });
}

/** @param {number} p */
export const probability = (p) => (p >= 0.0005 ? p.toFixed(3) : "< 0.001");

/** @param {string} text */
export const shortened = (text) => (text.length > 44 ? `${text.slice(0, 43)}…` : text);

/** @param {number} n @param {number} heads */
export const headName = (n, heads, block = "block") => `${block} ${Math.floor(n / heads) + 1}, head ${(n % heads) + 1}`;

/** @param {Found} found */
export const rankOf = ({ truth, vocabulary }) =>
  `rank ${truth.rank.toLocaleString("en")} of ${vocabulary.toLocaleString("en")}`;

/**
 * @param {Sentence} sentence
 * @param {(Wanted & Found)[]} found
 */
export function saidOf({ pieces, now, hidden, mask, unknown }, found) {
  const said = [`“${pieces[hidden + 1]}” is hidden.`];
  for (const { view, after, best, truth } of found) {
    const first = `first guess “${best.pieces[0]}”, ${probability(best.p[0])}`;
    said.push(`${after ? "After the change" : view.title}: ${first}; “${truth.piece}” ${probability(truth.p)}.`);
  }
  if (unknown) said.push("[UNK] is what the model does not know.");
  if (found.some(({ view }) => view.causal) && now.slice(0, hidden).some(({ ids }) => ids.includes(mask)))
    said.push("The model that sees only the left side met no [MASK] in training.");
  return said.join(" ");
}
