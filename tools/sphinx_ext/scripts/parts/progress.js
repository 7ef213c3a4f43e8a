// What a reader did, as one JSON text of the form that `python -m d2lmini progress` reads and writes
// (d2lmini/exercises/reader/progress.py).
import { keep, kept, recall } from "./storage.js";

/**
 * @typedef {{ tries: number, passed: boolean, last: string, review: string, ticked: boolean, chosen: string }} Entry
 * of a part of an exercise: `passed` is the word of a check, here or in a notebook, `ticked` that of the reader
 */

export const PROGRESS = "progress"; // its name in storage
const PREDICTIONS = "predict-",
  NEW = { tries: 0, passed: false, last: "", review: "", ticked: false, chosen: "" };

export const isPassed = (/** @type {Entry} */ { passed }) => passed;
export const isTicked = (/** @type {Entry} */ { ticked }) => ticked;

/**
 * Returns: what was done, from key to entry. Throws: the text is none of ours.
 * @param {string} text
 * @returns {Record<string, Partial<Entry>>}
 */
export function parsed(text) {
  const found = JSON.parse(text).parts;
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error("no parts");
  for (const entry of Object.values(found))
    for (const [name, empty] of Object.entries(NEW)) {
      const value = entry[name] ?? empty;
      if (typeof value !== typeof empty || value < 0) throw new Error(`not as it should be: ${name}`);
    }
  return found;
}

/**
 * Of two entries what was done in either, as `merged` of progress.py has it.
 * @param {Partial<Entry> | undefined} mine
 * @param {Partial<Entry>} other
 * @returns {Entry}
 */
export function merged(mine, other) {
  const one = { ...NEW, ...mine },
    two = { ...NEW, ...other };
  return {
    ...two,
    ...one,
    tries: Math.max(one.tries, two.tries),
    passed: one.passed || two.passed,
    last: one.tries >= two.tries ? one.last : two.last,
    review: one.review || two.review,
    ticked: one.ticked || two.ticked,
    chosen: one.chosen.length >= two.chosen.length ? one.chosen : two.chosen,
  };
}

// Kept in the browser; where that keeps nothing it lasts as long as the page.
export class Progress {
  #parts = /** @type {Record<string, Partial<Entry>>} */ ({});
  #keeps = true;
  #listeners = /** @type {(() => void)[]} */ ([]);

  constructor() {
    this.#load();
  }

  #load() {
    const text = recall(PROGRESS);
    this.#keeps &&= text !== undefined;
    if (!this.#keeps) return;
    try {
      this.#parts = text ? parsed(text) : {};
    } catch {
      this.#parts = {};
    }
  }

  #save() {
    this.#keeps = keep(PROGRESS, this.#text()) && this.#keeps;
    this.#tell();
  }

  #tell() {
    for (const listener of this.#listeners) listener();
  }

  #text(indent = 0) {
    return JSON.stringify({ version: 1, parts: this.#parts }, null, indent);
  }

  // Another page of the book wrote it.
  renew() {
    this.#load();
    this.#tell();
  }

  keeps() {
    return this.#keeps;
  }

  // Returns: number of parts.
  begun() {
    return Object.keys(this.#parts).length;
  }

  of(/** @type {string} */ key) {
    return { ...NEW, ...this.#parts[key] };
  }

  // How many parts are done: of these, or of all.
  count(/** @type {(entry: Entry) => boolean} */ done, keys = Object.keys(this.#parts)) {
    return keys.filter((key) => done(this.of(key))).length;
  }

  // What the reader predicted in the chapters, which folds.js keeps. Returns: the names it is kept by.
  predictions() {
    return kept(PREDICTIONS);
  }

  change(/** @type {string} */ key, /** @type {Partial<Entry>} */ values) {
    this.#load(); // what another page wrote meanwhile
    this.#parts[key] = { ...this.of(key), ...values };
    this.#save();
  }

  // One part, or all that was done and predicted.
  forget(key = "") {
    this.#load();
    if (key) delete this.#parts[key];
    else {
      this.#parts = {};
      for (const name of this.predictions()) keep(name, "");
    }
    this.#save();
  }

  // The file that carries it to another browser, or to a notebook.
  file() {
    return `${this.#text(1)}\n`;
  }

  // Add what a file says. Returns: number of its parts. Throws: it is none of ours.
  read(/** @type {string} */ text) {
    const found = parsed(text);
    this.#load();
    for (const [key, entry] of Object.entries(found)) this.#parts[key] = merged(this.#parts[key], entry);
    this.#save();
    return Object.keys(found).length;
  }

  // Called now and after each change.
  listen(/** @type {() => void} */ listener) {
    this.#listeners.push(listener);
    listener();
  }
}
