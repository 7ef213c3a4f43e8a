// Attention in windows on a grid of patches, row by row; every second layer may be shifted.

/** @typedef {{ rows: number, columns: number, window_size: number, shifted: boolean }} Windows */

/**
 * By how many patches the windows of a layer are shifted: not where one is as long as a side.
 * @param {Windows} windows
 * @param {number} layer from 1
 */
export const shift = ({ rows, columns, window_size: M, shifted }, layer) =>
  shifted && layer % 2 === 0 && M !== rows && M !== columns ? Math.floor(M / 2) : 0;

/**
 * Whoever shares a window with one of the patches.
 * @param {Windows} windows
 * @param {number} layer
 * @param {number[]} patches
 */
function spread(windows, layer, patches) {
  const { rows, columns, window_size: M } = windows,
    first = shift(windows, layer); // windows begin there; one before it is what the edge of the picture leaves
  const at = (/** @type {number} */ i) => Math.floor((i + M - first) / M),
    windowOf = (/** @type {number} */ t) => at(Math.floor(t / columns)) * (columns + 1) + at(t % columns);
  const seen = new Set(patches.map(windowOf));
  return Array.from({ length: rows * columns }, (_, t) => t).filter((t) => seen.has(windowOf(t)));
}

/**
 * What a patch may attend to in a layer.
 * @param {Windows} windows
 * @param {number} layer
 * @param {number} t
 */
export const mayAttend = (windows, layer, t) => spread(windows, layer, [t]);

/**
 * How many layers it took each patch to reach patch `t` after so many, 0 for those that have not: from the output back
 * to the picture.
 * @param {Windows} windows
 * @param {number} layers
 * @param {number} t
 */
export function layersTaken(windows, layers, t) {
  const taken = Array(windows.rows * windows.columns).fill(0);
  let reached = [t];
  for (let layer = layers; layer >= 1; layer--) {
    reached = spread(windows, layer, reached);
    for (const i of reached) taken[i] ||= layers - layer + 1;
  }
  return taken;
}

/**
 * What a layer costs with h features: scores of a head, operations of all matrix products.
 * @param {Windows} windows
 * @param {number} h
 */
export function costs({ rows, columns, window_size }, h) {
  const T = rows * columns,
    scores = T * window_size ** 2;
  return { scores, attention: 4 * scores * h, projections: 8 * T * h ** 2 };
}
