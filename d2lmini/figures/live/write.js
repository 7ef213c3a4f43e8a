// Writing with a GPT, and what it goes by: what it believes comes next, and where one of its heads looks.
import { drawn, filtered, randomNumbers } from "./filters.js";
import { tidy } from "./tensor.js";

const SLICE = 64; // tokens that are read at once
const TURN = 10; // milliseconds of work between two steps

// Where that begins which a model reads of a text: at its beginning while the context has room for all of it. A full
// context loses its oldest quarter, so that for a while a cache serves again.
/** @param {number} length @param {number} max_len */
function windowStart(length, max_len) {
  const quarter = Math.max(1, max_len >> 2);
  return quarter * Math.ceil(Math.max(0, length - max_len) / quarter);
}

// Reads a text, then draws so many tokens more and reads each of them.
//   tokens: the text, one or more. count: how many to write.
//   filters, seed, draws: as `filtered` takes them; of the random numbers that the seed gives, so many are used up.
//   cache: whether keys and values are kept; if not, each token costs a pass over all that is read.
//   block, head: whose weights are told.
// A step is {rows}, of each token for the first time that it is read:
//   at, token: its place in the text. first: where that begins which was read with it.
//   logits: (V,), scores of what follows. weights: (at - first + 1,), how the head looks at the tokens from `first` on.
//   cost: of a token that was written {positions, milliseconds}, what went through the model for it; else null.
/**
 * @typedef {{ at: number, token: number, first: number, logits: Float32Array, weights: Float32Array,
 *   cost: { positions: number, milliseconds: number } | null }} Row
 */
/**
 * @param {{ model: import("./gpt.js").GPT }} loaded
 * @param {{ tokens: number[], count?: number, filters?: import("./filters.js").Filters, seed?: number, draws?: number,
 *   cache?: boolean, block?: number, head?: number }} options
 */
export function* writeTask({ model }, options) {
  const { tokens, count = 0, filters = {}, seed = 1, draws = 0, cache = true, block = 0, head = 0 } = options;
  const { max_len } = model.config,
    text = [...tokens],
    random = randomNumbers(seed),
    state = model.empty_state(max_len);
  for (let i = 0; i < draws; i++) random();
  let first = 0,
    told = 0,
    rows = /** @type {Row[]} */ ([]),
    scores = new Float32Array(0),
    turn = performance.now();

  // Tokens [from, to) of the text, which follow what the state has.
  /** @param {number} from @param {number} to */
  function pass(from, to) {
    let seen = { S: 0, data: new Float32Array(0) };
    const logits = tidy(() => {
      const own = (/** @type {number} */ i, /** @type {import("./tensor.js").Tensor} */ weights) => {
        if (i === block) seen = { S: weights.shape[2], data: weights.data.slice() };
      };
      const { data } = model.extend(text.slice(from, to), state, { seen: own });
      return data.slice();
    });
    const V = logits.length / (to - from);
    for (let at = Math.max(from, told); at < to; at++) {
      const row = (head * (to - from) + at - from) * seen.S;
      rows.push({
        at,
        token: text[at],
        first,
        logits: logits.slice((at - from) * V, (at - from + 1) * V),
        weights: seen.data.slice(row, row + at - first + 1),
        cost: null,
      });
    }
    told = Math.max(told, to);
    scores = logits.slice(-V);
  }

  try {
    for (let written = 0; ; written++) {
      const start = windowStart(text.length, max_len);
      if (!cache || start !== first) {
        state.first(0);
        first = start;
        told = Math.max(told, first);
      }
      const cost = { positions: 0, milliseconds: 0 };
      for (let from = first + state.length; from < text.length; from += SLICE) {
        if (performance.now() - turn > TURN) {
          yield { rows };
          rows = [];
          turn = performance.now();
        }
        const to = Math.min(text.length, from + SLICE),
          before = performance.now();
        pass(from, to);
        cost.milliseconds += performance.now() - before;
        cost.positions += to - from;
      }
      if (written) rows[rows.length - 1].cost = cost;
      if (written === count) break;
      text.push(drawn(filtered(scores, filters), random));
    }
    yield { rows };
    return null;
  } finally {
    state.free();
  }
}
