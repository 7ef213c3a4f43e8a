// The tokens of a chat model, as tokenization/chat.py has them: byte pairs, special tokens, and messages as one text.
import { Merges } from "./byte_pairs.js";
import { noText, tooLong, wellFormed } from "./tokenizer_tools.js";

// Unicode's white space, which is not JavaScript's \s: no merge reaches over a match. Digits are cut out first, one by
// one, so that "white space before a word" looks no further than its own stretch.
const GAP = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const STRETCH = new RegExp(
  `'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?[^${GAP}\\p{L}\\p{N}]+|[${GAP}]+(?![^${GAP}])|[${GAP}]+`,
  "gu",
);
const matchesOf = (/** @type {string} */ text) =>
  text.split(/(\p{N})/u).flatMap((part, i) => (i % 2 ? [part] : (part.match(STRETCH) ?? [])));

const ROLES = ["system", "user", "assistant"];

/** @typedef {{ role: string, content: string }} Message */

export class ChatTokenizer {
  // special: ids of tokens that no text spells. stop: those that end a text. system: the message that is put before
  // others, where none is. max_len: tokens of a text.
  /**
   * @param {{ tokens: string[], merges: [number, number][], special: number[], stop: number[], system: string,
   *   max_len?: number }} said
   */
  constructor({ tokens, merges, special, stop, system, max_len }) {
    this.tokens = tokens;
    this.merges = new Merges({ tokens, merges });
    this.special = new Set(special);
    this.stop = stop;
    this.system = system;
    this.max_len = max_len ?? Number.POSITIVE_INFINITY;
    this.open = this.merges.ids.get("<|im_start|>") ?? -1;
    this.close = this.merges.ids.get("<|im_end|>") ?? -1;
  }

  // The ids of a text; nothing in it is taken for a special token.
  /** @param {string} text */
  encode(text) {
    return this.merges.encode(wellFormed(text), matchesOf, this.max_len);
  }

  // The ids of messages {role, content}, up to where the answer begins.
  /** @param {Message[]} messages */
  encodeChat(messages) {
    if (!messages.length) throw noText();
    const all = messages[0].role === "system" ? messages : [{ role: "system", content: this.system }, ...messages];
    const line = this.encode("\n"),
      ids = all.flatMap(({ role, content }) => {
        if (!ROLES.includes(role)) throw new Error(`a message is of ${role}, expected ${ROLES.join(", ")}`);
        const spelled = [...this.special].map((id) => this.tokens[id]).find((token) => content.includes(token));
        if (spelled) throw new Error(`a message spells the special token ${spelled}, expected plain text`);
        return [this.open, ...this.encode(`${role}\n${content}`), this.close, ...line];
      });
    return [...ids, this.open, ...this.encode("assistant\n")];
  }

  // The ids of {tokens}, {messages} or {text}. Throws an Error where there are none, or too many.
  /** @param {{ tokens?: Iterable<number> | null, messages?: Message[] | null, text?: string }} given */
  source({ tokens = null, messages = null, text = "" }) {
    const ids = tokens ? Array.from(tokens) : messages ? this.encodeChat(messages) : this.encode(text);
    if (!ids.length) throw noText();
    if (ids.length > this.max_len) throw tooLong(ids.length, this.max_len);
    return ids;
  }

  /** @param {number} id */
  isStop(id) {
    return this.stop.includes(id);
  }

  // Each token by itself; one that holds a part of a character as its bytes, like <D0>.
  /** @param {Iterable<number>} ids */
  pieces(ids) {
    return Array.from(ids, (id) => {
      if (this.special.has(id)) return this.tokens[id];
      try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.merges.bytes(id));
      } catch {
        return [...this.merges.bytes(id)].map((byte) => `<${byte.toString(16).toUpperCase()}>`).join("");
      }
    });
  }

  // A function that says of each token what it adds to the text: nothing, while a character is unfinished.
  writer() {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return (/** @type {number} */ id) =>
      this.special.has(id) ? "" : decoder.decode(this.merges.bytes(id), { stream: true });
  }
}
