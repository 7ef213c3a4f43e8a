// A picture that was finished pixel by pixel: what a pixel was drawn from, and where a head of the last layer looked.
import { unpack } from "../base/numbers.js";

/**
 * @typedef {{ size: number[], given: number, heads: number, mean_heads: boolean, shown: number, pixels: number[],
 *   probabilities: ArrayLike<number>, where: ArrayLike<number>, weights: ArrayLike<number> }} Walk
 */

/**
 * What completion_walk has packed. Places take a byte where there are no more than 256.
 * @param {Omit<Walk, "probabilities" | "where" | "weights"> & Record<"probabilities" | "where" | "weights", string>} walk
 */
export function unpackWalk(walk) {
  const [height, width] = walk.size,
    [probabilities, weights] = [walk.probabilities, walk.weights].map((text) => unpack(text)),
    where = height * width > 256 ? unpack(walk.where, Uint16Array) : unpack(walk.where);
  return { ...walk, probabilities, weights, where };
}

/**
 * Of the drawn pixel `step`, counted from 1: its index in the picture, the grey drawn and the likeliest, the
 * probability of each, the bits of the one drawn, null where it has probability 0, and the strongest weights of a head:
 * [place, weight], place 0 the start sign, i the pixel i - 1.
 * @param {Walk} walk
 * @param {number} step
 * @param {number} head
 */
export function stepOf({ size, given, heads, shown, pixels, probabilities, where, weights }, step, head) {
  const steps = (size[0] - given) * size[1],
    K = probabilities.length / steps,
    index = given * size[1] + step - 1,
    drawn = pixels[index],
    start = ((step - 1) * heads + head) * shown;
  const shares = Array.from({ length: K }, (_, k) => probabilities[(step - 1) * K + k] / 255);
  return {
    index,
    drawn,
    likeliest: shares.indexOf(Math.max(...shares)),
    shares,
    bits: shares[drawn] > 0 ? -Math.log2(shares[drawn]) : null,
    seen: Array.from({ length: shown }, (_, n) => [where[start + n], weights[start + n] / 255]),
  };
}

/**
 * Where a place lies, seen from a pixel.
 * @param {number} place
 * @param {number} index
 * @param {number} width
 */
export function direction(place, index, width) {
  if (place === 0) return "the start sign";
  const up = Math.floor(index / width) - Math.floor((place - 1) / width),
    left = (index % width) - ((place - 1) % width);
  if (up === 0) return left === 1 ? "the pixel before" : `the one ${left} to the left`;
  if (left === 0) return up === 1 ? "the pixel above" : `the one ${up} above`;
  return `the one ${up} up and ${Math.abs(left)} to the ${left > 0 ? "left" : "right"}`;
}
