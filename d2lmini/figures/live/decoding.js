// How one searches: beam search. (What is drawn, and from what: filters.js.)
import { logSoftmax } from "./activations.js";
import { ranked } from "./filters.js";

/** @typedef {{ tokens: number[], score: number }} Told  a sequence */

// Beam search over `step(token, state)`, which gives scores and changes the state; `copy(state)` and `free(state)`. A
// sequence of L tokens scores its log-probability over ((5 + L) / 6) ** length_penalty, as `beam_search` of
// decoding/search.py, which says when it ends. Yields the beams and what has ended after each token; returns the ended
// sequences, the best first.
/**
 * @template State
 * @param {{ step: (token: number, state: State) => Float32Array | number[], copy: (state: State) => State,
 *   free: (state: State) => void }} search
 * @param {State} start
 * @param {{ bos: number, eos: number, max_len: number, beam_size: number, length_penalty?: number }} options
 * @returns {Generator<{ beams: Told[], ended: Told[] }, Told[], void>}
 */
export function* beamSearch({ step, copy, free }, start, { bos, eos, max_len, beam_size, length_penalty = 0.6 }) {
  /** @typedef {{ tokens: number[], total: number, state: State }} Beam */
  const rank = (/** @type {Beam} */ { tokens, total }) => total / ((5 + tokens.length) / 6) ** length_penalty;
  const best = (/** @type {Beam[]} */ sequences) => [...sequences].sort((a, b) => rank(b) - rank(a));
  const told = (/** @type {Beam[]} */ sequences) =>
    best(sequences).map((one) => ({ tokens: one.tokens, score: rank(one) }));
  let beams = /** @type {Beam[]} */ ([{ tokens: [], total: 0, state: start }]),
    ended = /** @type {Beam[]} */ ([]);
  try {
    for (let length = 1; length <= max_len; length++) {
      const options = /** @type {Beam[]} */ ([]);
      for (const beam of beams) {
        const logs = logSoftmax(step(beam.tokens.at(-1) ?? bos, beam.state));
        for (const token of ranked(logs).slice(0, beam_size + 1)) // one of them may end the sequence
          options.push({ tokens: [...beam.tokens, token], total: beam.total + logs[token], state: beam.state });
      }
      options.sort((a, b) => b.total - a.total);
      const ends = (/** @type {Beam} */ { tokens }) => tokens.at(-1) === eos;
      ended = best([...ended, ...options.slice(0, beam_size).filter(ends)]).slice(0, beam_size);
      const next = options.filter((option) => !ends(option)).slice(0, beam_size);
      const states = next.map(({ state }) => copy(state));
      for (const { state } of beams) free(state);
      beams = next.map((option, i) => ({ ...option, state: states[i] }));
      yield { beams: told(beams), ended: told(ended) };
      if (ended.length === beam_size && rank(ended[beam_size - 1]) >= Math.max(...beams.map(rank))) break;
      if (length === max_len) ended = [...ended, ...beams];
    }
  } finally {
    for (const { state } of beams) free(state);
  }
  return told(ended);
}
