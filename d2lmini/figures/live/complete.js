// ImageGPT finishes a picture whose first rows are given, several times at once.
import { drawn, filtered, randomNumbers } from "./filters.js";

// `top` are the given pixels, integers below K. A step has of the pixel at `index` in each of the completions
// `values[n]`, the `probabilities[n]` that it was drawn from, and `looks[n]`: the weights of the last layer, in the mean
// of its heads, of the start sign and of each pixel before. Returns how many completions were finished.
/** @typedef {import("./multi_head.js").KeyValueCache} KeyValueCache */
/**
 * @param {{ model: import("./image_gpt.js").ImageGPT }} loaded
 * @param {{ top: number[], temperature?: number, seed?: number, completions?: number }} options
 */
export function* completeTask({ model }, { top, temperature = 1, seed = 0, completions = 1 }) {
  const [height, width] = model.img_size,
    random = Array.from({ length: completions }, (_, n) => randomNumbers(1000 * seed + n));
  const all = /** @type {KeyValueCache[]} */ ([]);
  const start = { caches: kept(model.empty_caches()), next: [model.config.num_levels, ...top] }; // the start sign

  /** @param {KeyValueCache[]} caches */
  function kept(caches) {
    all.push(...caches);
    return caches;
  }

  // What the pixel that follows is drawn from, and where the last layer looks for it.
  /** @param {{ caches: KeyValueCache[], next: number[] }} walk */
  function ask({ caches, next }) {
    const look = { weights: new Float32Array(0) };
    const scores = model.step(next, caches, {
      seen(block, weights) {
        if (block === model.blks.length - 1) look.weights = meanOfHeads(weights);
      },
    });
    return { probabilities: filtered(scores.row(next.length - 1), { temperature }), looks: look.weights };
  }

  try {
    const first = ask(start);
    const walks = random.map((numbers, n) => ({
      numbers,
      caches: n ? kept(start.caches.map((cache) => cache.copy())) : start.caches,
      next: start.next,
      now: first,
    }));
    for (let index = top.length; index < height * width; index++) {
      if (index > top.length) for (const walk of walks) walk.now = ask(walk);
      const values = walks.map(({ now, numbers }) => drawn(now.probabilities, numbers));
      walks.forEach((walk, n) => {
        walk.next = [values[n]];
      });
      yield {
        index,
        values,
        probabilities: walks.map(({ now }) => now.probabilities),
        looks: walks.map(({ now }) => now.looks),
      };
    }
    return completions;
  } finally {
    for (const cache of all) cache.free();
  }
}

// Of weights (H, T, S), the last query's in the mean of the heads: (S,).
/** @param {import("./tensor.js").Numbers} weights */
function meanOfHeads({ shape: [H, T, S], data }) {
  const mean = new Float32Array(S);
  for (let head = 0; head < H; head++) {
    const row = data.subarray((head * T + T - 1) * S, (head * T + T) * S);
    for (let j = 0; j < S; j++) mean[j] += row[j] / H;
  }
  return mean;
}
