// What the tokenizers share: texts as sequences of code points, cleaned as Python cleans them, and errors in words.

// A lone surrogate is no character.
/** @param {string} text */
export const wellFormed = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

// Python's white space, which is not JavaScript's \s.
const WHITE_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/gu;

// A text with single plain spaces, without soft hyphens and spaces of no width, as `clean` of data/tatoeba.py.
/** @param {string} text */
export const cleanText = (text) =>
  wellFormed(text).replaceAll("\u200b", "").replaceAll("\xad", "").split(WHITE_SPACE).filter(Boolean).join(" ");

export const noText = () => new Error("there is no text");

/** @param {number | string} tokens @param {number} most */
export const tooLong = (tokens, most) =>
  new Error(`the text is too long: ${tokens} tokens, but the model reads at most ${most}`);

// The ids of tokens.
/** @param {string[]} tokens */
export const idsOf = (tokens, first = 0) => new Map(tokens.slice(first).map((token, i) => [token, first + i]));

// The token of an id.
/** @param {string[]} tokens @param {number} id */
export function tokenOf(tokens, id) {
  if (!(id in tokens)) throw new RangeError(`id ${id} is none of the ${tokens.length} tokens`);
  return tokens[id];
}

// Ids up to the first `end`.
/** @param {Iterable<number>} ids @param {number} end */
export function upTo(ids, end) {
  const own = Array.from(ids),
    place = own.indexOf(end);
  return place < 0 ? own : own.slice(0, place);
}
