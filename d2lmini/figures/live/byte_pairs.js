// Byte-pair encoding over UTF-8 bytes: no text is unknown.
import { cleanText, idsOf, noText, tokenOf, tooLong, upTo } from "./texts.js";

const FIRST_ID = 4; // before it are <pad>, <bos>, <eos>, <unk>: no text is taken for one
const MATCHES = / ?\p{L}+['’]?| ?\p{N}+| ?[^ \p{L}\p{N}]+| +/gu; // no merge reaches over one

// Bytes as GPT-2 writes them, each as one character: those that print as themselves, the others from U+0100 on.
const LETTERS = (() => {
  const prints = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte !== 173);
  let others = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(prints(byte) ? byte : others++));
})();
const BYTE_OF_LETTER = idsOf(LETTERS);

// Merges of byte pairs, in their order: bytes to ids. The first `first` tokens are not made by any.
export class Merges {
  constructor({ tokens, merges, first = 0 }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens, first);
    this.longest = tokens.reduce((most, token) => Math.max(most, token.length), 1); // bytes
    this.merges = new Map(); // of two ids, as `pair` writes them: rank and the merged id
    merges.forEach(([left, right], rank) => {
      this.merges.set(this.#pair(left, right), { rank, id: this.ids.get(tokens[left] + tokens[right]) });
    });
    this.known = new Map(); // ids of matches that were read before
  }

  #pair(left, right) {
    return left * this.tokens.length + right;
  }

  // The ids of matches, over which no merge reaches. Throws an Error where a text is certainly longer than `max_len`:
  // before the merges, which take time.
  encode(text, matches, max_len) {
    const least = Math.ceil(new TextEncoder().encode(text).length / this.longest);
    if (least > max_len) throw tooLong(`at least ${least}`, max_len);
    return matches(text).flatMap((match) => this.#merged(match));
  }

  #merged(match) {
    if (!this.known.has(match)) {
      if (this.known.size > 10000) this.known.clear();
      let ids = Array.from(new TextEncoder().encode(match), (byte) => this.ids.get(LETTERS[byte]));
      for (;;) {
        let first = null;
        for (let i = 1; i < ids.length; i++) {
          const merge = this.merges.get(this.#pair(ids[i - 1], ids[i]));
          if (merge && !(merge.rank >= first?.rank)) first = merge;
        }
        if (!first) break;
        ids = this.#merge(ids, first);
      }
      this.known.set(match, ids);
    }
    return this.known.get(match);
  }

  // All pairs of a merge, from the left: none of these makes a pair of a higher rank.
  #merge(ids, merge) {
    const merged = [];
    for (let i = 0; i < ids.length; i++) {
      if (i + 1 < ids.length && this.merges.get(this.#pair(ids[i], ids[i + 1])) === merge) {
        merged.push(merge.id);
        i += 1;
      } else merged.push(ids[i]);
    }
    return merged;
  }

  // The bytes of a token.
  bytes(id) {
    return Uint8Array.from(tokenOf(this.tokens, id), (letter) => BYTE_OF_LETTER.get(letter));
  }

  // The text of tokens; a byte that is no whole character becomes \ufffd.
  text(ids) {
    const bytes = ids.flatMap((id) => Array.from(this.bytes(id)));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }
}

const spacedWords = (text) => (text ? text.split(" ") : []).flatMap((word) => ` ${word}`.match(MATCHES) ?? []);

export class BytePairs {
  constructor({ tokens, merges, special, max_len }) {
    this.tokens = tokens;
    this.max_len = max_len ?? Number.POSITIVE_INFINITY;
    [this.pad, this.bos, this.eos] = special.map((token) => tokens.indexOf(token));
    this.merges = new Merges({ tokens, merges, first: FIRST_ID });
  }

  // The ids of a cleaned text, without <eos>.
  encode(text) {
    return this.merges.encode(text, spacedWords, this.max_len);
  }

  // What the encoder reads. Throws an Error where there is no text, or too much.
  source(text) {
    const cleaned = cleanText(text);
    if (!cleaned) throw noText();
    const ids = [...this.encode(cleaned), this.eos];
    if (ids.length > this.max_len) throw tooLong(ids.length, this.max_len);
    return ids;
  }

  // Each token as a reader sees it, as `to_tokens`: ▁ is the space before a word.
  pieces(ids) {
    return Array.from(ids, (id) =>
      id < FIRST_ID ? tokenOf(this.tokens, id) : this.merges.text([id]).replaceAll(" ", "▁"),
    );
  }

  text(ids) {
    return this.merges.text(upTo(ids, this.eos).filter((id) => !(id < FIRST_ID))).replace(/^ /, "");
  }
}
