// Losses of many trainings: how they compare with the character frequencies, and where a curve's points lie.

/**
 * What came of a recipe, over depths and rates; losses are null where they are not finite.
 * @typedef {{ name: string, told: string, loss: (number | null)[][], verdict: number[][], steps: number[][],
 *   best: number[], curves: number[][][], agree: number[][] }} Card
 */

/**
 * The lowest loss of all, at most that of the frequencies, and the ends of an axis on which all curves can be compared.
 * @param {{ recipes: Pick<Card, "loss">[], unigram: number, uniform: number }} state
 */
export function bounds({ recipes, unigram, uniform }) {
  const least = Math.min(unigram, ...recipes.flatMap(({ loss }) => loss.flat()).filter((one) => one !== null));
  return { least, low: Math.floor(least * 2) / 2, high: Math.ceil((uniform + 0.75) * 2) / 2 };
}

/**
 * How good a loss is, from 0, no better than the frequencies, to 1, the lowest of all.
 * @param {number | null} loss
 * @param {{ unigram: number, least: number }} of
 */
export const share = (loss, { unigram, least }) =>
  loss === null || least === unigram ? 0 : Math.max(0, (unigram - loss) / (unigram - least));

/**
 * The step at the middle of each stretch that a point of a curve is the mean of; `made` steps were made.
 * @param {number} points
 * @param {number} every
 * @param {number} made
 */
export const middles = (points, every, made) =>
  Array.from({ length: points }, (_, i) => (i * every + Math.min((i + 1) * every, made)) / 2);

/**
 * The largest loss of some curves and of their ends.
 * @param {Pick<Card, "curves" | "loss">[]} cards
 * @param {number} d
 * @param {number} n
 */
export const highest = (cards, d, n) =>
  Math.max(...cards.flatMap(({ curves, loss }) => [...curves[d][n], loss[d][n] ?? 0]));
