// A prompt as a model over characters reads it, and what is said of a place in the text.

export const LONGEST = 1000; // of a prompt
const ALIKE = { "’": "'", "‘": "'", "–": "-", "—": "-", "\u00a0": " ", "\t": " " }; // what phones and pages put in

/** @param {string} letter */
export const letterName = (letter) => ({ "\n": "↵", " ": "␣" })[letter] ?? letter;

/**
 * What of a prompt the model knows, as ids, and a sentence about what became of the rest.
 * @param {string} prompt
 * @param {string[]} names  of all tokens
 */
export function readable(prompt, names) {
  const known = new Map(names.map((name, i) => [name, i])),
    unknown = /** @type {Set<string>} */ (new Set()),
    alike = /** @type {Set<string>} */ (new Set()),
    ids = /** @type {number[]} */ ([]);
  for (const one of prompt.replaceAll("\r", "")) {
    if (!known.has(one)) (known.has(ALIKE[one]) ? alike : unknown).add(named(one));
    const id = known.get(one) ?? known.get(ALIKE[one]);
    if (id !== undefined) ids.push(id);
  }
  const said = [
    [unknown.size, `Left out, the model does not know them: ${list(unknown)}.`],
    [alike.size, `Replaced by what looks like it: ${list(alike)}.`],
    [!ids.length, "No prompt is left, so the text begins with a line break."],
    [prompt.length >= LONGEST, `A prompt has at most ${LONGEST} characters.`],
  ];
  return {
    ids: ids.length ? ids : [known.get("\n") ?? 0],
    said: said.flatMap(([holds, sentence]) => (holds ? [sentence] : [])).join(" "),
  };
}

// A character as itself, between marks that keep a line's direction, or by its number where it would not be seen alone.
const named = (/** @type {string} */ one) =>
  /[\p{C}\p{M}\p{Z}]/u.test(one)
    ? `U+${/** @type {number} */ (one.codePointAt(0)).toString(16).toUpperCase()}`
    : `\u2068${one}\u2069`;

const list = (/** @type {Set<string>} */ set) => [...set].slice(0, 8).join(" ") + (set.size > 8 ? " …" : "");

/**
 * What the reader sets, as the model is asked: null where a filter lets everything pass.
 * @param {{ temperature: number, top_k: number, top_p: number, min_p: number }} set
 * @param {number} V
 */
export const filtersOf = ({ temperature, top_k, top_p, min_p }, V) => ({
  temperature,
  top_k: top_k < V ? top_k : null,
  top_p: top_p < 1 ? top_p : null,
  min_p: min_p || null,
});

/**
 * Where a character stands: number `i` of a text that the model reads from `first` on.
 * @param {{ i: number, first: number, given: number, context: number }} place
 */
export function whereIs({ i, first, given, context }) {
  const said = `Character ${i + 1}, the prompt has ${given}. `;
  if (i < context) return said;
  const read = first ? ` and reads the last ${i + 1 - first}, not the paler ones.` : ", and the text is longer now.";
  return `${said}The model was trained on ${context} at a time${read}`;
}

/**
 * The letters from number `first` on, each with how far before the last it is.
 * @param {string[]} letters
 * @param {number} first
 */
export const lettersBack = (letters, first) =>
  letters.slice(first).map((letter, j) => {
    const back = letters.length - 1 - first - j;
    return `“${letterName(letter)}” ${back ? `(${back} back)` : "(itself)"}`;
  });

/**
 * How many characters were written, and what each cost.
 * @param {{ characters: number, positions: number, milliseconds: number }} spent
 */
export const meanCosts = ({ characters, positions, milliseconds }) => [
  String(characters),
  ...[positions, milliseconds].map((sum) => (characters ? (sum / characters).toFixed(1) : "–")),
];
