// Byte-pair encoding over UTF-8 bytes: no text is unknown.
import { cleanText, idsOf, noText, tokenOf, tooLong, upTo } from "./tokenizer_tools.js";

const FIRST_ID = 4; // before it are <pad>, <bos>, <eos>, <unk>: no text is taken for one
const MATCHES = / ?\p{L}+['’]?| ?\p{N}+| ?[^ \p{L}\p{N}]+| +/gu; // no merge reaches over one

// Bytes as GPT-2 writes them, each as one character: those that print as themselves, the others from U+0100 on.
const LETTERS = (() => {
  const prints = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte !== 173);
  let others = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(prints(byte) ? byte : others++));
})();
const BYTE_OF_LETTER = idsOf(LETTERS);

/** @typedef {{ rank: number, id: number }} Merge */

// Merges of byte pairs, in their order: bytes to ids. The first `first` tokens are not made by any.
export class Merges {
  /** @param {{ tokens: string[], merges: [number, number][], first?: number }} said */
  constructor({ tokens, merges, first = 0 }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens, first);
    this.longest = tokens.reduce((most, token) => Math.max(most, token.length), 1); // bytes
    /** @type {Map<number, Merge>} */
    this.merges = new Map(); // of two ids, as `pair` writes them: rank and the merged id
    merges.forEach(([left, right], rank) => {
      this.merges.set(this.#pair(left, right), { rank, id: this.#id(tokens[left] + tokens[right]) });
    });
    /** @type {Map<string, number[]>} */
    this.known = new Map(); // ids of matches that were read before
  }

  // Of a token that is there.
  /** @param {string} token */
  #id(token) {
    return /** @type {number} */ (this.ids.get(token));
  }

  /** @param {number} left @param {number} right */
  #pair(left, right) {
    return left * this.tokens.length + right;
  }

  // The ids of matches, over which no merge reaches. Throws an Error where a text is certainly longer than `max_len`:
  // before the merges, which take time.
  /** @param {string} text @param {(text: string) => string[]} matches @param {number} max_len */
  encode(text, matches, max_len) {
    const least = Math.ceil(new TextEncoder().encode(text).length / this.longest);
    if (least > max_len) throw tooLong(`at least ${least}`, max_len);
    return matches(text).flatMap((match) => this.#merged(match));
  }

  /** @param {string} match */
  #merged(match) {
    const known = this.known.get(match);
    if (known) return known;
    if (this.known.size > 10000) this.known.clear();
    let ids = Array.from(new TextEncoder().encode(match), (byte) => this.#id(LETTERS[byte]));
    for (let merge = this.#first(ids); merge; merge = this.#first(ids)) ids = this.#merge(ids, merge);
    this.known.set(match, ids);
    return ids;
  }

  // The merge of the lowest rank of those that can be made, if there is one.
  /** @param {number[]} ids */
  #first(ids) {
    let first = /** @type {Merge | undefined} */ (undefined);
    for (let i = 1; i < ids.length; i++) {
      const merge = this.merges.get(this.#pair(ids[i - 1], ids[i]));
      if (merge && !(first && merge.rank >= first.rank)) first = merge;
    }
    return first;
  }

  // All pairs of a merge, from the left: none of these makes a pair of a higher rank.
  /** @param {number[]} ids @param {Merge} merge */
  #merge(ids, merge) {
    const merged = /** @type {number[]} */ ([]);
    for (let i = 0; i < ids.length; i++) {
      if (i + 1 < ids.length && this.merges.get(this.#pair(ids[i], ids[i + 1])) === merge) {
        merged.push(merge.id);
        i += 1;
      } else merged.push(ids[i]);
    }
    return merged;
  }

  // The bytes of a token.
  /** @param {number} id */
  bytes(id) {
    return Uint8Array.from(tokenOf(this.tokens, id), (letter) => BYTE_OF_LETTER.get(letter) ?? 0);
  }

  // The text of tokens; a byte that is no whole character becomes \ufffd.
  /** @param {number[]} ids */
  text(ids) {
    const bytes = ids.flatMap((id) => Array.from(this.bytes(id)));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }
}

const spacedWords = (/** @type {string} */ text) =>
  (text ? text.split(" ") : []).flatMap((word) => ` ${word}`.match(MATCHES) ?? []);

export class BytePairs {
  /** @param {{ tokens: string[], merges: [number, number][], special: string[], max_len?: number }} said */
  constructor({ tokens, merges, special, max_len }) {
    this.tokens = tokens;
    this.max_len = max_len ?? Number.POSITIVE_INFINITY;
    const [pad, bos, eos] = special.map((token) => tokens.indexOf(token));
    this.pad = pad;
    this.bos = bos;
    this.eos = eos;
    this.merges = new Merges({ tokens, merges, first: FIRST_ID });
  }

  // The ids of a cleaned text, without <eos>.
  /** @param {string} text */
  encode(text) {
    return this.merges.encode(text, spacedWords, this.max_len);
  }

  // What the encoder reads. Throws an Error where there is no text, or too much.
  /** @param {string} text */
  source(text) {
    const cleaned = cleanText(text);
    if (!cleaned) throw noText();
    const ids = [...this.encode(cleaned), this.eos];
    if (ids.length > this.max_len) throw tooLong(ids.length, this.max_len);
    return ids;
  }

  // Each token as a reader sees it, as `to_tokens`: ▁ is the space before a word.
  /** @param {Iterable<number>} ids */
  pieces(ids) {
    return Array.from(ids, (id) =>
      id < FIRST_ID ? tokenOf(this.tokens, id) : this.merges.text([id]).replaceAll(" ", "▁"),
    );
  }

  /** @param {Iterable<number>} ids */
  text(ids) {
    return this.merges.text(upTo(ids, this.eos).filter((id) => !(id < FIRST_ID))).replace(/^ /, "");
  }
}
