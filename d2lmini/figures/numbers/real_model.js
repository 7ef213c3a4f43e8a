// What a reader sets and switches off in a model, and where its heads look.

/**
 * @typedef {{ block: number, head: number | null }} Off  a head, or a whole block
 * @typedef {{ chat: boolean, temperature: number, top_k: number, top_p: number, seed: number, count: number }} Settings
 */

/**
 * A prompt as the model is asked to read it.
 * @param {Settings} set
 * @param {string} prompt
 */
export const inputOf = ({ chat }, prompt) =>
  chat ? { messages: [{ role: "user", content: prompt }] } : { text: prompt };

/**
 * How tokens are drawn; null where a filter lets everything pass.
 * @param {Settings} set
 */
export const filtersOf = ({ temperature, top_k, top_p }) => ({
  temperature,
  top_k: top_k || null,
  top_p: top_p < 1 ? top_p : null,
  min_p: null,
});

export const HEAD_SHADES = {
  first: "the first token",
  before: "the token before",
  itself: "the token itself",
  induction: "the token after its last occurrence",
};

/**
 * The share of a head's weights, at the last token, that goes where one of HEAD_SHADES says.
 * @param {ArrayLike<number>} weights
 * @param {number[]} ids
 * @param {string} shade
 */
export function headShare(weights, ids, shade) {
  const i = weights.length - 1;
  if (shade === "first") return weights[0];
  if (shade === "itself") return weights[i];
  if (shade === "before") return i ? weights[i - 1] : 0;
  let sum = 0;
  for (let j = 1; j <= i; j++) if (ids[j - 1] === ids[i]) sum += weights[j];
  return sum;
}

/** @param {Off} one @returns {(other: Off) => boolean} */
const same = (one) => (other) => one.block === other.block && one.head === other.head;

/** @param {Off[]} off @param {Off} one */
export const isOff = (off, one) => off.some(same(one));

/** @param {Off[]} off @param {Off} one */
export const toggled = (off, one) => (isOff(off, one) ? off.filter((other) => !same(one)(other)) : [...off, one]);

/**
 * Whether a head does nothing: it is off, or its block is.
 * @param {Off[]} off
 * @param {number} block
 * @param {number} head
 */
export const isGone = (off, block, head) => isOff(off, { block, head }) || isOff(off, { block, head: null });
