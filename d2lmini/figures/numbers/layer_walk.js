// What the page shows of a stage of an encoder block.

/** @typedef {{ title: string, numbers: number[][] | number[][][], uses: [number, string][] }} Stage */

/**
 * The rows of a stage, those of a head where each has its own, and the largest size of a number in them.
 * @param {Stage} stage
 * @param {number} head from 1
 */
export function shownOf({ numbers }, head) {
  const perHead = Array.isArray(numbers[0][0]),
    rows = /** @type {number[][]} */ (perHead ? numbers[head - 1] : numbers);
  return { rows, perHead, top: Math.max(...rows.flat().map(Math.abs), 1e-9) };
}

/**
 * What row `t` of another stage is to row `chosen` of this one: whether it is made from it.
 * @param {Stage} stage
 * @param {number} other from 1
 */
export const makes = ({ uses }, other, chosen, t) =>
  uses.some(([n, which]) => n === other && (which === "all rows" || t === chosen));

/**
 * What a row of a stage is made from, in words.
 * @param {Stage[]} stages
 * @param {number} number of the stage, from 1
 * @param {string} token of the row
 */
export function madeFrom(stages, number, token) {
  const { uses } = stages[number - 1];
  if (!uses.length) return `The row of “${token}” is what came in.`;
  const parts = uses.map(
    ([n, which]) => `${which === "all rows" ? "all rows" : "its own row"} of ${stages[n - 1].title}`,
  );
  const meet = uses.some(([, which]) => which === "all rows");
  return `The row of “${token}” is made from ${parts.join(" and ")}: ${meet ? "here tokens meet." : "no other row."}`;
}
