// What can be learned in the playground: a prompt of tokens, and the tokens that answer it; or the next letter of a text.
import { randomNumbers } from "./filters.js";
import { IGNORE_INDEX } from "./losses.js";

/**
 * @typedef {() => number} Random
 * @typedef {{ prompt: number[], answer: number[], given?: boolean[] }} Example
 * @typedef {{ size?: number, letters?: number, backwards?: boolean, text?: string }} TaskOptions
 * @typedef {{ size: number, tokens: string[], most?: number, everywhere?: boolean,
 *   draw: (random: Random, length: number, heldOut: boolean) => Example }} Drawn
 * @typedef {{ size?: number, heldOut?: boolean }} Asked
 */

const ALPHABET = Array.from("abcdefghijklmnopqrstuvwxyz"),
  DIGITS = Array.from("0123456789"),
  BLANK = "_"; // what stands where a model that sees everything is to write
const HELD_OUT = 8; // one prompt of so many is never trained on, one tenth of a text
const TEXT = { least: 200, most: 1_000_000, letters: 250 };

/** @type {(random: Random, end: number) => number} */
const below = (random, end) => Math.floor(random() * end);
/** @type {(random: Random, size: number, end: number) => number[]} */
const several = (random, size, end) => Array.from({ length: size }, () => below(random, end));

// So many different numbers from 0 to before `end`.
/** @param {Random} random @param {number} size @param {number} end */
function different(random, size, end) {
  const left = Array.from({ length: end }, (_, i) => i);
  return Array.from({ length: size }, () => left.splice(below(random, left.length), 1)[0]);
}

/** @param {(shown: number[]) => number[]} answer @returns {(options: TaskOptions) => Drawn} */
function ofLetters(answer) {
  return ({ letters = 10, size = 6 }) => ({
    size,
    tokens: [...ALPHABET.slice(0, within("letters", letters, 2, 26)), ">"],
    draw(random, length) {
      const shown = several(random, length, letters);
      return { prompt: [...shown, letters], answer: answer([...shown]) };
    },
  });
}

// Pairs of a key and its value, then the keys once more: what was the value of each?
/** @param {TaskOptions} options @returns {Drawn} */
function lookUp({ size = 4, letters = 10 }) {
  return {
    size,
    most: within("letters", letters, 2, 26),
    tokens: [...ALPHABET.slice(0, letters), ...DIGITS],
    draw(random, length) {
      const keys = different(random, length, letters),
        values = several(random, length, 10).map((digit) => letters + digit);
      const [first, ...others] = different(random, length, length);
      return {
        prompt: [...keys.flatMap((key, i) => [key, values[i]]), keys[first]],
        answer: [values[first], ...others.flatMap((i) => [keys[i], values[i]])],
        given: keys.flatMap((_, i) => (i ? [true, false] : [false])), // the keys are asked, not guessed
      };
    },
  };
}

// A word of different letters, then pieces of it: which letter comes after this one?
/** @param {TaskOptions} options @returns {Drawn} */
function recall({ size = 6, letters = 10 }) {
  return {
    size,
    most: within("letters", letters, 2, 26),
    tokens: ALPHABET.slice(0, letters),
    draw(random, length) {
      const word = different(random, length, letters),
        answer = /** @type {number[]} */ ([]),
        given = /** @type {boolean[]} */ ([]);
      let at = length;
      while (answer.length < 2 * length) {
        const begins = at >= length - 1 || random() < 0.25; // with a letter that is told
        at = begins ? below(random, length) : at + 1;
        answer.push(word[at]);
        given.push(begins);
      }
      return { prompt: word, answer, given };
    },
  };
}

// Two numbers of so many digits; `backwards`: the sum from its last digit on, as one adds by hand.
/** @param {TaskOptions} options @returns {Drawn} */
function addNumbers({ size = 2, backwards = false }) {
  const digits = (/** @type {number} */ number, length) => Array.from(String(number).padStart(length, "0"), Number);
  return {
    size,
    most: 15, // beyond it sums are not exact
    tokens: [...DIGITS, "+", "="],
    draw(random, length) {
      const [a, b] = [0, 1].map(() => below(random, 10 ** length)),
        sum = digits(a + b, length + 1);
      return {
        prompt: [...digits(a, length), 10, ...digits(b, length), 11],
        answer: backwards ? sum.reverse() : sum,
      };
    },
  };
}

/** @param {TaskOptions} options @returns {Drawn} */
function nextLetter({ text = "", size = 32 }) {
  const letters = Array.from(text.normalize("NFC").replace(/\r\n?/g, "\n")),
    tokens = [...new Set(letters)].sort(),
    count = (/** @type {number} */ number) => number.toLocaleString("en");
  const least = Math.max(TEXT.least, 20 * (size + 1));
  if (letters.length < least)
    throw new Error(`the text has ${count(letters.length)} characters, expected at least ${count(least)}`);
  if (letters.length > TEXT.most)
    throw new Error(`the text has ${count(letters.length)} characters, expected at most ${count(TEXT.most)}`);
  if (tokens.length < 2) throw new Error("the text is one character alone: there is nothing to learn");
  if (tokens.length > TEXT.letters)
    throw new Error(`the text has ${count(tokens.length)} different characters, expected at most ${TEXT.letters}`);
  const number = new Map(tokens.map((token, i) => [token, i])),
    ids = Int32Array.from(letters, (letter) => number.get(letter) ?? 0),
    cut = Math.floor(ids.length * 0.9);
  return {
    size,
    most: Math.floor(ids.length * 0.1) - 1,
    tokens,
    everywhere: true,
    draw(random, length, heldOut) {
      const [first, end] = heldOut ? [cut, ids.length] : [0, cut],
        start = first + below(random, end - first - length);
      return { prompt: [ids[start]], answer: Array.from(ids.subarray(start + 1, start + length + 1)) };
    },
  };
}

/** @type {Record<string, (options: TaskOptions) => Drawn>} */
const DRAWN = {
  copy: ofLetters((shown) => shown),
  reverse: ofLetters((shown) => shown.reverse()),
  sort: ofLetters((shown) => shown.sort((a, b) => a - b)),
  "look up": lookUp,
  recall,
  add: addNumbers,
  text: nextLetter,
};
export const PLAYGROUND_TASKS = Object.keys(DRAWN);

/** @param {string} name @param {number} value @param {number} least @param {number} most */
function within(name, value, least, most) {
  if (!Number.isInteger(value) || value < least || value > most)
    throw new Error(`${name} is ${value}, expected an integer from ${least} to ${most}`);
  return value;
}

// Whether a prompt is one of those that are kept from training (FNV-1a of its tokens).
/** @param {number[]} prompt */
export function keptBack(prompt) {
  let hash = 0x811c9dc5;
  for (const token of prompt) hash = Math.imul(hash ^ token, 0x01000193);
  return ((hash ^ (hash >>> 15)) >>> 0) % HELD_OUT === 0;
}

// A task by its name; the other options are its own: `size` (letters, pairs, digits, or characters of a text at a time),
// `letters`, `backwards`, `text`, and but for a text `examples`: how many there are to train on; 0: all. Throws an Error,
// a sentence, where one does not fit. Returns
//   tokens: what each is written as, the last being a blank
//   example(random, {size, heldOut}): {prompt, answer}, arrays of tokens; `given` says which of the answer are not to be
//     guessed, where there are such
//   lay(examples, causal): a batch {tokens, targets, batch}
//   batch(random, number, {causal, size, heldOut}): both
//   lengthOf(size, causal): tokens of a sequence of the batch
export class PlaygroundTask {
  /** @param {TaskOptions & { name: string, examples?: number }} options */
  constructor({ name, examples = 0, ...options }) {
    if (!DRAWN[name]) throw new Error(`there is no task ${name}, expected one of ${PLAYGROUND_TASKS.join(", ")}`);
    if (options.size !== undefined) within("size", options.size, 1, 256);
    const { size, tokens, draw, most = 256, everywhere = false } = DRAWN[name](options);
    this.name = name;
    this.size = size;
    this.most = most;
    this.draw = draw;
    this.everywhere = everywhere;
    this.tokens = [...tokens, BLANK];
    within("size", size, 1, most);
    this.few = within("examples", examples, 0, 100_000);
    this.blank = this.tokens.length - 1;
    if (!everywhere) for (const heldOut of [false, true]) this.example(randomNumbers(0), { heldOut });
  }

  /** @param {Random} random @param {Asked} asked */
  example(random, { size = this.size, heldOut = false } = {}) {
    within("size", size, 1, this.most);
    if (this.few && !heldOut && !this.everywhere) random = randomNumbers(below(random, this.few)); // one of the few
    for (let trial = 0; trial < 10_000; trial++) {
      const drawn = this.draw(random, size, heldOut);
      if (this.everywhere || keptBack(drawn.prompt) === heldOut) return drawn;
    }
    throw new Error(`there are too few examples of size ${size}: none is left for ${heldOut ? "a test" : "training"}`);
  }

  // A causal model reads the answer as it writes it, each token the target of the place before it. One that sees
  // everything has blanks in its place.
  /** @param {Example[]} examples @param {boolean} causal */
  lay(examples, causal) {
    const rows = examples.map(({ prompt, answer, given = [] }) => {
      const written = causal || this.everywhere,
        nothing = Array(prompt.length - (written ? 1 : 0)).fill(IGNORE_INDEX);
      const read = written ? answer.slice(0, -1) : answer.map((token, i) => (given[i] ? token : this.blank));
      const guessed = answer.map((token, i) => (given[i] ? IGNORE_INDEX : token));
      return { tokens: [...prompt, ...read], targets: [...nothing, ...guessed] };
    });
    const flat = (/** @type {"tokens" | "targets"} */ which) => Int32Array.from(rows.flatMap((row) => row[which]));
    return { tokens: flat("tokens"), targets: flat("targets"), batch: rows.length };
  }

  /** @param {Random} random @param {number} number @param {Asked & { causal?: boolean }} options */
  batch(random, number, { causal = true, ...options } = {}) {
    return this.lay(
      Array.from({ length: number }, () => this.example(random, options)),
      causal,
    );
  }

  lengthOf(size = this.size, causal = true) {
    const { tokens } = this.lay([this.draw(randomNumbers(0), within("size", size, 1, this.most), false)], causal);
    return tokens.length;
  }

  // Tokens of what a reader writes, and back.
  /** @param {string} text */
  encode(text) {
    return Array.from(text, (letter) => {
      const token = this.tokens.indexOf(letter);
      if (token < 0) throw new Error(`"${letter}" is none of the tokens of this task`);
      return token;
    });
  }
  /** @param {ArrayLike<number>} tokens */
  decode(tokens) {
    return Array.from(tokens, (token) => this.tokens[token]).join("");
  }
}
