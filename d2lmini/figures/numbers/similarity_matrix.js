// Cosines of pictures (rows) and texts (columns), of which those with one number are pairs.
import { softmax } from "../base/numbers.js";

/** @typedef {"picture" | "text"} Side */

/**
 * Cosines of a picture with all texts, or of a text with all pictures.
 * @param {number[][]} cosines
 * @param {Side} side
 * @param {number} n
 */
const line = (cosines, side, n) => (side === "picture" ? cosines[n] : cosines.map((row) => row[n]));

/**
 * How a picture bets on the texts, or a text on the pictures.
 * @param {{ cosines: number[][], side: Side, chosen: number, temperature: number }} state
 */
export const bets = ({ cosines, side, chosen, temperature }) => softmax(line(cosines, side, chosen), temperature);

/**
 * The loss in nats, and how many pictures and texts choose their own; the same as SimilarityMatrix.reckon.
 * @param {number[][]} cosines
 * @param {number} temperature
 */
export function reckon(cosines, temperature) {
  const sides = ["picture", "text"].map((side) => cosines.map((_, n) => line(cosines, /** @type {Side} */ (side), n)));
  const losses = sides.flatMap((lines) => lines.map((row, n) => -Math.log(softmax(row, temperature)[n])));
  return {
    loss: losses.reduce((a, b) => a + b) / losses.length,
    right: sides.map((lines) => lines.filter((row, n) => row.indexOf(Math.max(...row)) === n).length),
  };
}
