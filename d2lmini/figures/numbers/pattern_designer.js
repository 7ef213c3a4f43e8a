// A sparse pattern joined from its parts: its pairs, after how many layers they have met, and its cost.

/**
 * @typedef {Record<"window" | "dilation" | "block_size" | "num_global" | "every" | "num_random", number> &
 *   { causal: boolean }} Parts
 */

/**
 * The keys of each query: the masks of d2lmini.efficient and sliding_window_mask, joined. `orders`: random keys, one
 * after the other, of not causal and causal patterns, of draws, of queries.
 * @param {{ num_tokens: number, draws: number, orders: ArrayLike<number> }} drawings
 * @param {Parts & { draw: number }} parts
 */
export function pattern({ num_tokens: T, draws, orders }, parts) {
  const { window, dilation, block_size, num_global, every, num_random, causal, draw } = parts,
    most = orders.length / (2 * draws * T);
  return Array.from({ length: T }, (_, t) => {
    const at = ((Number(causal) * draws + draw) * T + t) * most,
      drawn = Array.from({ length: num_random }, (_, n) => orders[at + n]);
    const attends = (/** @type {number} */ s) => {
      const off = Math.abs(t - s);
      if (causal && s > t) return false;
      return (
        (off < window * dilation && off % dilation === 0) ||
        (block_size > 0 && Math.floor(t / block_size) === Math.floor(s / block_size)) ||
        t < num_global ||
        s < num_global ||
        (every > 0 && t % every === 0) ||
        drawn.includes(s)
      );
    };
    return Array.from({ length: T }, (_, s) => s).filter(attends);
  });
}

// After how many layers t depends on s: boolean powers, as layers_per_pair. -1: never.
export function layersPerPair(/** @type {number[][]} */ keys) {
  const layers = keys.map((_, t) => keys.map((_, s) => Number(t === s) - 1)); // t itself: 0
  for (let n = 1, grown = true; grown; n++) {
    grown = false;
    const before = metAfter(layers, n);
    layers.forEach((row, t) =>
      row.forEach((met, s) => {
        if (met < 0 && keys[t].some((u) => before[u][s])) {
          row[s] = n;
          grown = true;
        }
      }),
    );
  }
  return layers;
}

// Which pairs have met after n layers.
export const metAfter = (/** @type {number[][]} */ layers, /** @type {number} */ n) =>
  layers.map((row) => row.map((met) => met >= 0 && met <= n));

/**
 * Of the pairs that are to meet, all or the causal ones: how many they are, how many have after n layers, and how many
 * layers it takes; null: some never do.
 * @param {number[][]} layers
 * @param {number} n
 * @param {boolean} causal
 */
export function reach(layers, n, causal) {
  const wanted = layers.flatMap((row, t) => row.filter((_, s) => !causal || s <= t));
  return {
    wanted: wanted.length,
    arrived: wanted.filter((met) => met >= 0 && met <= n).length,
    most: wanted.includes(-1) ? null : Math.max(...wanted),
  };
}

/**
 * Pairs of the same pattern, which was designed for T tokens, among N: row by row without a mask, as
 * PatternDesigner.pairs.
 * @param {number} T
 * @param {Parts} parts
 * @param {number} N
 */
export function pairs(T, { window, dilation: d, block_size: size, num_global, every, num_random, causal }, N) {
  const far = ((window === T ? N : window) - 1) * d;
  let sum = 0;
  for (let t = 0; t < N; t++) {
    const end = causal ? t + 1 : N,
      told = Math.min(num_global, end);
    const near = (/** @type {number} */ low, /** @type {number} */ high) =>
      Math.max(
        0,
        Math.floor((Math.min(high, t + far + 1) - 1 - t) / d) - Math.floor((Math.max(low, t - far) - 1 - t) / d),
      );
    const start = size ? t - (t % size) : 0,
      stop = Math.min(start + size, end),
      both = Math.max(start, Math.min(stop, told));
    let seen =
      stop - start + told - (both - start) + near(0, end) - near(start, stop) - near(0, told) + near(start, both);
    if (t < num_global || (every && t % every === 0)) seen = end;
    sum += seen + (Math.min(num_random, end) * (end - seen)) / end;
  }
  return sum;
}
