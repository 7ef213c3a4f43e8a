// Completions of a picture: their bits, the pixel that is shown, and where the model looked the most.

/** @typedef {{ values: number[], probabilities: ArrayLike<number>[], looks: ArrayLike<number>[] }} Walk pixel by pixel */

/**
 * The mean of -log2 of the probabilities that the values were drawn with.
 * @param {Pick<Walk, "values" | "probabilities">} walk
 */
export const bitsPerPixel = ({ values, probabilities }) =>
  values.reduce((total, value, i) => total - Math.log2(probabilities[i][value]), 0) / values.length;

/**
 * Weights with their places, the strongest first.
 * @param {ArrayLike<number>} look
 */
export const strongest = (look) => Array.from(look, (weight, at) => [at, weight]).sort((a, b) => b[1] - a[1]);

/**
 * The pixel that is told of: the first of those wanted that is written, else the last that is; `first`: none is.
 * @param {(number | null)[]} wanted
 * @param {number} first
 * @param {number} written
 */
export const shownPixel = (wanted, first, written) =>
  wanted.find((i) => i !== null && i - first < written) ?? first + written - 1;
