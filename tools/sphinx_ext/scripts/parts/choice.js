// A choice apart from its form. `said`: the letter that was answered since the page was opened, or "".

/** @typedef {import("./progress.js").Entry} Entry */

/**
 * The letter that was answered last, or "".
 * @param {Entry} entry
 * @param {string} right
 * @param {string} said
 */
export const lastOf = ({ passed, chosen }, right, said) => said || (passed ? right : chosen.slice(-1));

/**
 * What an answer changes: nothing behind the right one, or where it repeats the last one.
 * @param {Entry} entry
 * @param {string} letter
 * @param {string} right
 * @param {string} said
 * @returns {Partial<Entry>}
 */
export function answered(entry, letter, right, said) {
  const { chosen, passed, tries } = entry;
  if (passed || (tries && letter === lastOf(entry, right, said))) return {};
  return {
    tries: tries + 1,
    passed: letter === right,
    last: letter === right ? "passed" : "wrong",
    chosen: chosen.includes(letter) ? chosen : chosen + letter,
  };
}

/**
 * @param {Entry} entry
 * @param {string} right
 * @param {string} said
 */
export function verdict(entry, right, said) {
  const last = lastOf(entry, right, said);
  const words = last && `${last} is ${last === right ? "right" : "wrong"}.`;
  if (entry.passed) return `${words} All explanations can be opened now.`;
  return last && `${words} The explanation is below ${last}. Try another one.`;
}
