// Tokens of a picture: its patches, row by row, after `extra` tokens (one of the class, or none); weights of a token.

/** @typedef {{ rows: number, columns: number, extra: number }} Grid */

const placeOf = (/** @type {Grid} */ { columns, extra }, /** @type {number} */ t) => [
  Math.floor((t - extra) / columns),
  (t - extra) % columns,
];

/**
 * What a token is called.
 * @param {Grid} grid
 * @param {number} t
 */
export function called(grid, t) {
  if (t < grid.extra) return "class token";
  const [row, column] = placeOf(grid, t);
  return `row ${row + 1}, column ${column + 1}`;
}

/**
 * The token beside another, -1 where the picture ends; the class token is above the first row.
 * @param {Grid} grid
 * @param {number} t
 * @param {number} down
 * @param {number} right
 */
export function neighbour(grid, t, down, right) {
  const { rows, columns, extra } = grid;
  if (t < extra) return down > 0 ? extra : -1;
  const [row, column] = placeOf(grid, t).map((at, axis) => at + [down, right][axis]);
  if (row < 0 && extra) return 0;
  const inside = row >= 0 && row < rows && column >= 0 && column < columns;
  return inside ? extra + row * columns + column : -1;
}

/**
 * How strongly each weight is shaded: the largest is 0.75.
 * @param {number[]} weights
 */
export function shades(weights) {
  const largest = Math.max(...weights, 1 / 255);
  return weights.map((w) => (0.75 * w) / largest);
}

/**
 * The three largest weights that do not round to zero, and whose they are.
 * @param {number[]} weights
 */
export const strongest = (weights) =>
  weights
    .map((w, s) => [w, s])
    .filter(([w]) => w >= 0.005)
    .sort((a, b) => b[0] - a[0])
    .slice(0, 3);
