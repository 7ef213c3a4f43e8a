// The search apart from its page: which sections, terms, exercises, numbers and names have what was typed.

/**
 * @typedef {{ entries: [string, string, string, string, string, string?][], synonyms: Record<string, string[]> }} Found
 * as tools/section_index.py has it
 */

const WORTH = { term: 30, number: 24, section: 12, exercise: 5, name: 4 };
const SORTS = ["section", "problem", "equation", "figure"]; // of numbers, the first is shown first
const NUMBER = /^(?:(d2l|udl)\s*)?(?:(equation|figure|problem|section)\s*)?(\d\d?(?:\.\d+)+)$/;

const low = (/** @type {string} */ text) =>
  text
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase();
const bare = (/** @type {string} */ text) => low(text).replace(/[-‐‑–]/g, " "); // a hyphen and a space are alike
const wordsOf = (/** @type {string} */ text) => bare(text).match(/[\p{L}\p{N}]+(?:[.'][\p{L}\p{N}]+)*/gu) ?? [];
const joined = (/** @type {string[]} */ ...words) => words.join("").replaceAll(" ", "");

// Where a phrase is in a text, from the beginning of a word: "rope" is not in "properly".
function places(/** @type {string} */ phrase, /** @type {string} */ text, most = Infinity) {
  const found = [];
  for (let at = text.indexOf(phrase); at >= 0 && found.length < most; at = text.indexOf(phrase, at + phrase.length))
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) found.push(at);
  return found;
}
const count = (/** @type {string} */ phrase, /** @type {string} */ text) => places(phrase, text, 5).length;

// Where any of some phrases is, as [begin, end], none in another.
function marks(/** @type {string[]} */ phrases, /** @type {string} */ text) {
  const found = phrases.flatMap((phrase) => places(phrase, text).map((at) => [at, at + phrase.length]));
  found.sort((a, b) => a[0] - b[0]);
  return found.filter(([start], i) => i === 0 || start >= found[i - 1][1]);
}

/** @typedef {ReturnType<typeof read>} Entry */
const read = (/** @type {Found["entries"][number]} */ [kind, title, page, address, text, number]) => ({
  kind,
  title,
  page,
  address,
  text,
  number,
  inTitle: bare(title),
  inText: bare(text),
  name: bare(kind === "name" ? title.slice(title.lastIndexOf(".") + 1) : title.split(" (")[0]),
});

/**
 * Points of an entry, none if a word is missing. `words`: each as its forms.
 * @param {Entry} entry
 * @param {string[][]} words
 * @param {string} phrase
 */
function score({ kind, name, inTitle, inText }, words, phrase) {
  const [whole, part] = kind === "name" ? [20, 8] : [60, 25]; // what explains a thing goes first
  let total = WORTH[kind];
  for (const word of words) {
    const best = word.map(
      (form) => Number(name === form && whole) + Number(count(form, inTitle) && part) + 2 * count(form, inText),
    );
    if (!Math.max(...best)) return 0;
    total += Math.max(...best);
  }
  if (words.length < 2) return total;
  return total + (count(phrase, inTitle) ? 40 : count(phrase, inText) && 12);
}

const labelOf = (/** @type {Entry} */ { inTitle }) => inTitle.split(":")[0]; // "udl problem 12.5"
const rank = (/** @type {Entry} */ entry) =>
  Math.max(
    SORTS.findIndex((sort) => labelOf(entry).includes(sort)),
    0,
  );

// The text around the first of some phrases, in pieces of which each second one is a phrase.
export function excerpt(/** @type {Entry} */ { inText, text }, /** @type {string[]} */ phrases) {
  const [first] = marks(phrases, inText)[0] ?? [0];
  const start = inText.length === text.length ? first - 60 : 0; // else accents were dropped, and places are others
  const from = start > 0 ? text.indexOf(" ", start) + 1 : 0; // from a word
  const rest = text.slice(from);
  const shown = rest.length > 220 ? rest.slice(0, rest.lastIndexOf(" ", 220)) : rest; // to a word
  const plain = bare(shown);
  const cuts = [0, ...(plain.length === shown.length ? marks(phrases, plain).flat() : []), shown.length];
  const pieces = cuts.slice(1).map((end, i) => shown.slice(cuts[i], end));
  if (from) pieces[0] = `… ${pieces[0]}`;
  if (shown !== rest) pieces[pieces.length - 1] += " …";
  return pieces;
}

export class Sections {
  #entries;
  #written = /** @type {Map<string, string[]>} */ (new Map()); // "warmup": as itself and as "warm up"

  constructor(/** @type {Found} */ { entries, synonyms }) {
    this.#entries = entries.map(read);
    for (const { title, text } of this.#entries)
      for (const [term] of low(`${title} ${text}`).matchAll(/\p{L}+(?:-\p{L}+)*/gu)) this.#says(bare(term));
    for (const [word, phrases] of Object.entries(synonyms)) this.#says(bare(word), phrases.map(bare));
  }

  #says(/** @type {string} */ phrase, ways = /** @type {string[]} */ ([])) {
    const key = joined(phrase);
    this.#written.set(key, [...new Set([...this.#forms(key), phrase, ...ways])]);
  }

  // What a word may be written as; the first is the word itself.
  #forms(/** @type {string} */ word) {
    return this.#written.get(word) ?? [word];
  }

  // The words of a query, each as its forms; two that the book also writes as one, or with a hyphen, are one.
  asked(/** @type {string} */ query) {
    const found = /** @type {string[][]} */ ([]);
    for (const word of wordsOf(query)) {
      const last = found.at(-1) ?? [],
        both = last.length ? joined(last[0], word) : "";
      if (this.#written.has(both))
        found.splice(-1, 1, [...new Set([...this.#forms(both), ...last.map((form) => `${form} ${word}`)])]);
      else found.push(this.#forms(word));
    }
    return found;
  }

  // "11.3", "UDL 12.5": whole numbers, of this book or of the two others.
  numbered(/** @type {string} */ query) {
    const [, book, sort, number] = bare(query.trim()).match(NUMBER) ?? [];
    if (!number) return [];
    const own = this.#entries.filter((entry) => entry.number === number && !book && (!sort || sort === "section"));
    const theirs = this.#entries.filter((entry) => {
      const label = labelOf(entry);
      if (entry.kind !== "number" || !label.endsWith(` ${number}`)) return false;
      return (!book || label.startsWith(book)) && (!sort || SORTS[rank(entry)] === sort);
    });
    return [...own, ...theirs.sort((a, b) => rank(a) - rank(b))];
  }

  // The best first.
  find(/** @type {string} */ query) {
    const exact = this.numbered(query);
    if (exact.length || !wordsOf(query).length) return exact;
    const found = this.#ranked(this.asked(query), query);
    return found.length ? found : this.#ranked(wordsOf(query).map(this.#forms, this), query);
  }

  #ranked(/** @type {string[][]} */ words, /** @type {string} */ query) {
    const phrase = bare(query.trim());
    const scored = this.#entries.map((entry) => ({ entry, points: score(entry, words, phrase) }));
    const found = scored.filter(({ points }) => points).sort((a, b) => b.points - a.points);
    return found.map(({ entry }) => entry);
  }

  // Where an entry leads. The page that is opened marks the words, and opens the fold that one of them is in.
  address(/** @type {Entry} */ { kind, address }, /** @type {string} */ query) {
    if (kind === "number" || kind === "name") return address;
    const [page, place] = address.split("#");
    const parts = (/** @type {string} */ form) =>
      form.includes(" ") ? form.split(" ").filter((word) => word.length > 3) : form;
    const marked = new Set(this.asked(query).flat().flatMap(parts));
    return `${page}?highlight=${encodeURIComponent([...marked].join(" "))}#${place}`;
  }
}
