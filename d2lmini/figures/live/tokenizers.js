// Tokenizers, from what a file of weights says of them: exactly as models/weights/tokenizers.py has it.
import { BytePairs } from "./byte_pairs.js";
import { ChatTokenizer } from "./chat_tokenizer.js";
import { cleanText, idsOf, noText, tokenOf, tooLong, upTo, wellFormed } from "./texts.js";
import { WordPieces } from "./word_pieces.js";

class Characters {
  constructor({ tokens }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens);
  }
  // Throws an Error that names a character which the model does not know.
  encode(text) {
    return Array.from(wellFormed(text), (letter) => {
      const id = this.ids.get(letter);
      if (id === undefined) throw new Error(`the model does not know the character ${characterName(letter)}`);
      return id;
    });
  }
  decode(ids) {
    return Array.from(ids, (id) => tokenOf(this.tokens, id)).join("");
  }
}

// A character for a sentence: also those that show nothing, or that join what is before them.
function characterName(letter) {
  const code = `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(letter) ? `“${letter}” (${code})` : code;
}

const WORD_OR_MARK =
  /'s(?![\p{L}\p{N}_])|[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*(?='s(?![\p{L}\p{N}_]))|[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*'?|[^\p{L}\p{N}_ ]/gu;

class Words {
  constructor({ tokens, max_len }) {
    this.tokens = tokens;
    this.ids = idsOf(tokens);
    this.max_len = max_len ?? Number.POSITIVE_INFINITY;
    [this.pad, this.bos, this.eos, this.unk] = ["<pad>", "<bos>", "<eos>", "<unk>"].map((token) => this.ids.get(token));
  }
  // What the encoder reads. Throws an Error where there is no text, or too much.
  source(text) {
    const cleaned = cleanText(text);
    if (!cleaned) throw noText();
    const ids = (cleaned.match(WORD_OR_MARK) ?? []).map((word) => this.ids.get(word) ?? this.unk);
    ids.push(this.eos);
    if (ids.length > this.max_len) throw tooLong(ids.length, this.max_len);
    return ids;
  }
  pieces(ids) {
    return Array.from(ids, (id) => tokenOf(this.tokens, id));
  }
  // The sentence, as `join_words`: French has a space before ?.
  text(ids) {
    const left = [this.pad, this.bos];
    return this.pieces(upTo(ids, this.eos).filter((id) => !left.includes(id)))
      .join(" ")
      .replace(/ (?=[.,!]|'s(?![\p{L}\p{N}_]))/gu, "")
      .replaceAll("' ", "'");
  }
}

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
