// Word pieces, as the encoders read them: lower case, no accents, the longest pieces that are tokens.
import { idsOf, noText, tokenOf, tooLong, wellFormed } from "./tokenizer_tools.js";

// The code points of some ranges, [first, last] inclusive, as what `has` tells of a letter.
/** @param {[number, number][]} pairs */
function inRanges(pairs) {
  return {
    has(/** @type {string} */ letter) {
      const point = Number(letter.codePointAt(0));
      let low = 0,
        high = pairs.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (pairs[middle][1] < point) low = middle + 1;
        else high = middle;
      }
      return low < pairs.length && pairs[low][0] <= point;
    },
  };
}

export class WordPieces {
  /**
   * @param {{ tokens: string[], special: string[], max_chars: number, classes: Record<string, [number, number][]>,
   *   max_len?: number }} said
   */
  constructor({ tokens, special, max_chars, classes, max_len }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens);
    this.max_chars = max_chars;
    this.max_len = max_len ?? Number.POSITIVE_INFINITY;
    this.classes = Object.fromEntries(Object.entries(classes).map(([name, pairs]) => [name, inRanges(pairs)]));
    this.special = special.map((token) => this.ids.get(token) ?? -1);
    const [pad, unk, cls, sep, mask] = this.special;
    this.pad = pad;
    this.unk = unk;
    this.cls = cls;
    this.sep = sep;
    this.mask = mask;
  }

  // The words of a text, which are cut into pieces, each an array of code points as strings.
  /** @param {string} text */
  #words(text) {
    const { dropped, spaces, ideographs, marks, punctuation } = this.classes;
    let cleaned = "";
    for (const letter of wellFormed(text)) {
      if (dropped.has(letter)) continue;
      if (spaces.has(letter)) cleaned += " ";
      else cleaned += ideographs.has(letter) ? ` ${letter} ` : letter;
    }
    const words = /** @type {string[][]} */ ([]);
    let word = /** @type {string[]} */ ([]);
    const end = () => {
      if (word.length) words.push(word);
      word = [];
    };
    for (const letter of cleaned.normalize("NFD"))
      if (!marks.has(letter))
        for (const small of letter.toLowerCase()) {
          const alone = punctuation.has(small);
          if (alone || small === " ") end();
          if (small !== " ") word.push(small);
          if (alone) end();
        }
    end();
    return words;
  }

  /** @param {string[]} word */
  #cut(word) {
    if (word.length > this.max_chars) return [this.unk];
    const ids = /** @type {number[]} */ ([]);
    for (let start = 0; start < word.length; ) {
      let end = word.length,
        id;
      for (; end > start; end--) {
        id = this.ids.get((start ? "##" : "") + word.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return [this.unk];
      ids.push(id);
      start = end;
    }
    return ids;
  }

  // Ids with [CLS] and [SEP]. Throws an Error where there is no text, or more than `max_len` tokens.
  /** @param {string} text */
  encode(text, max_len = this.max_len) {
    const ids = this.#words(text).flatMap((word) => this.#cut(word));
    if (!ids.length) throw noText();
    if (ids.length + 2 > max_len) throw tooLong(ids.length + 2, max_len);
    return [this.cls, ...ids, this.sep];
  }

  /** @param {Iterable<number>} ids */
  pieces(ids) {
    return Array.from(ids, (id) => tokenOf(this.tokens, id));
  }

  // The pieces as words, without special tokens.
  /** @param {Iterable<number>} ids */
  text(ids) {
    return this.pieces(Array.from(ids).filter((id) => !this.special.includes(id)))
      .join(" ")
      .replaceAll(" ##", "");
  }
}
