// A forward pass as it is, for tests and for whoever wants to look at all of it.
import { tidy } from "./tensor.js";

/** @typedef {import("./tensor.js").Numbers} Numbers */

// Weights of attention that a model shows while it works: a function for `seen`, and what it has seen, by block.
export function watch() {
  const weights = /** @type {({ block: number, which: string } & Numbers)[]} */ ([]);
  /** @type {import("./multi_head.js").SeenBy} */
  const seen = (block, { shape, data }, which = "own") => {
    weights.push({ block, which, shape, data: data.slice() });
  };
  return { seen, weights };
}

/** @param {{ model: any }} loaded @param {Given} given @param {object} [extra] */
function run({ model }, { tokens, source, options = {} }, extra) {
  return tidy(() => {
    if (source) {
      const state = model.start(source, tokens.length, { ...options, ...extra });
      try {
        return shown(model.decoder.forward(tokens, state, extra));
      } finally {
        state.free();
      }
    }
    return shown(model.forward(tokens, { ...options, ...extra }));
  });
}

const shown = (/** @type {Numbers} */ { shape, data }) => ({ shape, data: data.slice() });

/** @typedef {{ tokens: number[], source?: number[], options?: object }} Given */

/** @param {{ model: any }} loaded @param {Given} options */
// biome-ignore lint/correctness/useYield: a task is a generator, and this one has no steps
export function* logitsTask(loaded, options) {
  return run(loaded, options);
}

/** @param {{ model: any }} loaded @param {Given} options */
// biome-ignore lint/correctness/useYield: as above
export function* attentionTask(loaded, options) {
  const { seen, weights } = watch();
  return { logits: run(loaded, options, { seen }), weights };
}
