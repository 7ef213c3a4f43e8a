// Names of tokens, and what is said of them.

const LONGEST = 40_000; // characters: no text of 2,048 tokens that people write is longer

/**
 * A token as a name in a list: the space before a word, white space and line breaks are seen, and it has few letters.
 * @param {string} piece
 */
export function tokenName(piece, most = 14) {
  const spaces = piece.trim() ? /^ / : / /g,
    seen =
      piece
        .replace(spaces, "␣")
        .replaceAll("\n", "↵")
        .replaceAll("\t", "⇥")
        .replace(/␣{4,}/, ({ length }) => `␣×${length}`) || "·";
  return seen.length > most ? `${seen.slice(0, most - 1)}…` : seen;
}

/**
 * Names of the tokens that the last one looks at.
 * @param {string[]} pieces
 */
export const namesBefore = (pieces) =>
  pieces.map((piece, i) => `“${tokenName(piece)}”${i === pieces.length - 1 ? " (itself)" : ""}`);

/** @param {{ block: number, head: number }} at */
export const headName = ({ block, head }) => `Block ${block + 1}, head ${head + 1}`;

/**
 * What an error says, as a sentence.
 * @param {string} text
 */
export const realModelSentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`.replace(/([^.])$/, "$1.");

/**
 * What is wrong with a text before the model is asked, in a sentence, or "".
 * @param {string} text
 */
export function realModelUnread(text) {
  if (!text.trim()) return "The text is empty: type some words first.";
  const length = text.length.toLocaleString("en");
  return text.length > LONGEST ? `The text has ${length} characters, too many for the model: shorten it.` : "";
}

/**
 * What is off, in words after `start`; "" where nothing is.
 * @param {import("../numbers/real_model.js").Off[]} off
 * @param {string} start
 */
export function offNames(off, start) {
  const names = off.map(({ block, head }) => (head === null ? `block ${block + 1}` : `head ${block + 1}.${head + 1}`));
  return names.length ? `${start}with ${names.join(", ")} off` : "";
}

/**
 * @typedef {{ pieces: string[], p: number[] }} Next  likeliest tokens
 * @typedef {{ piece: string, nats: number | null, next: Next }} Loss  of a token
 */

/** @param {number | null} nats */
export const natsText = (nats) => (nats === null ? "the first token has no loss" : `${nats.toFixed(2)} nats`);

/** @param {Loss} row */
export function lossText({ piece, nats, next }) {
  const said = `“${tokenName(piece)}”: ${natsText(nats)}`;
  if (nats === null) return `${said}.`;
  const p = Math.exp(-nats),
    likeliest = next.pieces.map((one, j) => `“${tokenName(one)}” ${next.p[j].toFixed(2)}`).join(", ");
  return `${said}, probability ${p < 0.0005 ? "below 0.001" : p.toFixed(3)}. Likeliest tokens there: ${likeliest}.`;
}

/**
 * Why the model wrote no more than `count` tokens.
 * @param {string} why
 * @param {number} count
 */
export const endText = (why, count) =>
  ({
    stop: "The model ended its answer. “Go on” lets it write what would come next.",
    count: count > 1 ? `It stopped at the limit of ${count} tokens. “Go on” writes more.` : "",
    context: "The context is full.",
  })[why] ?? "";

/** @param {number} bytes */
export const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;
