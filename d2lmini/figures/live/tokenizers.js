// Tokenizers, from what a file of weights says of them: exactly as models/weights/tokenizers.py has it.
import { BytePairs } from "./byte_pairs.js";
import { ChatTokenizer } from "./chat_tokenizer.js";
import { cleanText, idsOf, noText, tokenOf, tooLong, upTo, wellFormed } from "./tokenizer_tools.js";
import { WordPieces } from "./word_pieces.js";

class Characters {
  /** @param {{ tokens: string[] }} said */
  constructor({ tokens }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens);
  }
  // Throws an Error that names a character which the model does not know.
  /** @param {string} text */
  encode(text) {
    return Array.from(wellFormed(text), (letter) => {
      const id = this.ids.get(letter);
      if (id === undefined) throw new Error(`the model does not know the character ${characterName(letter)}`);
      return id;
    });
  }
  /** @param {Iterable<number>} ids */
  decode(ids) {
    return Array.from(ids, (id) => tokenOf(this.tokens, id)).join("");
  }
}

// A character for a sentence: also those that show nothing, or that join what is before them.
/** @param {string} letter */
function characterName(letter) {
  const code = `U+${Number(letter.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}`;
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(letter) ? `“${letter}” (${code})` : code;
}

const WORD_OR_MARK =
  /'s(?![\p{L}\p{N}_])|[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*(?='s(?![\p{L}\p{N}_]))|[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*'?|[^\p{L}\p{N}_ ]/gu;

class Words {
  /** @param {{ tokens: string[], max_len?: number }} said */
  constructor({ tokens, max_len }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens);
    this.max_len = max_len ?? Number.POSITIVE_INFINITY;
    const id = (/** @type {string} */ token) => this.ids.get(token) ?? -1;
    this.pad = id("<pad>");
    this.bos = id("<bos>");
    this.eos = id("<eos>");
    this.unk = id("<unk>");
  }
  // What the encoder reads. Throws an Error where there is no text, or too much.
  /** @param {string} text */
  source(text) {
    const cleaned = cleanText(text);
    if (!cleaned) throw noText();
    const ids = (cleaned.match(WORD_OR_MARK) ?? []).map((word) => this.ids.get(word) ?? this.unk);
    ids.push(this.eos);
    if (ids.length > this.max_len) throw tooLong(ids.length, this.max_len);
    return ids;
  }
  /** @param {Iterable<number>} ids */
  pieces(ids) {
    return Array.from(ids, (id) => tokenOf(this.tokens, id));
  }
  // The sentence, as `join_words`: French has a space before ?.
  /** @param {Iterable<number>} ids */
  text(ids) {
    const left = [this.pad, this.bos];
    return this.pieces(upTo(ids, this.eos).filter((id) => !left.includes(id)))
      .join(" ")
      .replace(/ (?=[.,!]|'s(?![\p{L}\p{N}_]))/gu, "")
      .replaceAll("' ", "'");
  }
}

/** @type {Record<string, new (said: any) => any>} */
const TOKENIZER_KINDS = {
  characters: Characters,
  words: Words,
  byte_pairs: BytePairs,
  wordpiece: WordPieces,
  chat: ChatTokenizer,
};
const TOKENIZERS = new WeakMap();

// The tokenizer of which a file says {kind, tokens, ...}, made once.
//   characters           encode(text), decode(ids), tokens
//   words, byte_pairs    source(text) with <eos>, pieces(ids) for a reader, text(ids), bos, eos, pad
//   chat                 source({text | messages | tokens}), pieces(ids), writer(), stop
//   wordpiece            encode(text) with [CLS] and [SEP], pieces(ids), mask, special
export function makeTokenizer(said) {
  if (!TOKENIZERS.has(said)) {
    const Kind = TOKENIZER_KINDS[said.kind];
    if (!Kind) throw new Error(`the page does not know a tokenizer of kind ${said.kind}`);
    TOKENIZERS.set(said, new Kind(said));
  }
  return TOKENIZERS.get(said);
}
