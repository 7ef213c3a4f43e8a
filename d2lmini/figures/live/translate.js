// What a reader asks of a translator. In all tasks `heads` is null or has the factors of the heads of each block:
// {encoder, own, cross}.
import { logSoftmax } from "./activations.js";
import { corpusBleu } from "./bleu.js";
import { beamSearch } from "./decoding.js";
import { randomNumbers, ranked, shuffled } from "./filters.js";
import { watch } from "./plain_tasks.js";
import { tidy } from "./tensor.js";
import { makeTokenizer } from "./tokenizers.js";

/**
 * @typedef {import("./multi_head.js").HeadMasks} HeadMasks
 * @typedef {import("./transformer_seq2seq.js").DecoderState} DecoderState
 * @typedef {import("./transformer_seq2seq.js").Transformer} Transformer
 * @typedef {{ model: Transformer, tokenizer: any }} Loaded
 * @typedef {{ encoder?: HeadMasks, own?: HeadMasks, cross?: HeadMasks } | null} Heads
 * @typedef {{ heads?: Heads, places?: { source?: number[] | null, target?: number[] | null } }} How
 * @typedef {{ written: number[], total: number, weights: Float32Array[] }} Written
 */

const mostWritten = (/** @type {number[]} */ source) => 2 * source.length + 10;

// Greedy decoding. Yields {written, total, weights} after each token: the tokens so far, their log-probability, and
// the cross-attention that chose the last one, (blocks, H, S). `places`: see `placesOf`.
/**
 * @param {Transformer} model @param {{ bos: number, eos: number }} tokenizer @param {number[]} source @param {How} how
 * @returns {Generator<Written, Written, void>}
 */
function* greedily(model, { bos, eos }, source, { heads = null, places = {} } = {}) {
  const state = model.start(source, mostWritten(source), { positions: places.source, head_masks: heads?.encoder });
  const written = /** @type {number[]} */ ([]);
  let total = 0;
  try {
    while (written.length < mostWritten(source) && written.at(-1) !== eos) {
      const { seen, weights } = watch();
      const positions = places.target && [places.target[written.length]];
      const logs = tidy(() => {
        const options = { positions: places.target === null ? null : positions, head_masks: heads, seen };
        return logSoftmax(model.decoder.forward([written.at(-1) ?? bos], state, options).data);
      });
      const [token] = ranked(logs);
      written.push(token);
      total += logs[token];
      yield { written, total, weights: weights.filter(({ which }) => which === "cross").map(({ data }) => data) };
    }
  } finally {
    state.free();
  }
  return { written, total, weights: [] };
}

// As `greedily`, without a word meanwhile. Returns {text, total, length}.
/**
 * @param {Transformer} model @param {any} tokenizer @param {string} text @param {How} [how]
 * @returns {Generator<any, { text: string, total: number, length: number }, void>}
 */
function* silently(model, tokenizer, text, how) {
  const work = greedily(model, tokenizer, tokenizer.source(text), how);
  try {
    for (;;) {
      const { value, done } = tidy(() => work.next());
      if (done) return { text: tokenizer.text(value.written), total: value.total, length: value.written.length };
      yield null;
    }
  } finally {
    work.return({ written: [], total: 0, weights: [] }); // where it was stopped: its state is freed
  }
}

// The first step has the source's pieces and the number of those that the model does not know; the others have a
// piece more, the text so far, and the weights that chose the piece. Returns {text, ids, total}.
/** @param {Loaded} loaded @param {{ text: string, heads?: Heads }} options */
export function* translateTask({ model, tokenizer: said }, { text, heads }) {
  const tokenizer = makeTokenizer(said),
    source = tokenizer.source(text);
  yield {
    source: tokenizer.pieces(source),
    unknown: source.filter((/** @type {number} */ id) => id === tokenizer.unk).length,
  };
  let last = /** @type {Written} */ ({ written: [], total: 0, weights: [] });
  for (last of greedily(model, tokenizer, source, { heads })) {
    const [piece] = tokenizer.pieces(last.written.slice(-1));
    yield { piece, text: tokenizer.text(last.written), weights: last.weights };
  }
  return { text: tokenizer.text(last.written), ids: last.written, total: last.total };
}

/** @type {Record<string, (translations: string[], references: string[]) => number>} */
const SCORES = {
  exact: (translations, references) => translations.filter((text, i) => text === references[i]).length,
  bleu: corpusBleu,
};

// Translates sentences from number `found.length` on; `whole` has translations with all heads, as far as they are
// known. After each sentence it yields {text, whole, score, before}: both translations, and both scores so far.
/**
 * @param {Loaded} loaded
 * @param {{ sentences: string[], references: string[], metric: string, heads?: Heads, found: string[], whole: string[] }} options
 */
export function* scoreTask({ model, tokenizer: said }, { sentences, references, metric, heads, found, whole }) {
  const tokenizer = makeTokenizer(said),
    texts = [...found],
    wholes = [...whole];
  const score = (/** @type {string[]} */ translations) => SCORES[metric](translations, references);
  for (let i = texts.length; i < sentences.length; i++) {
    wholes[i] ??= (yield* silently(model, tokenizer, sentences[i])).text;
    texts.push(heads ? (yield* silently(model, tokenizer, sentences[i], { heads })).text : wholes[i]);
    yield { text: texts[i], whole: wholes[i], score: score(texts), before: score(wholes.slice(0, i + 1)) };
  }
  return true;
}

// Greedy decoding, then a beam without a length penalty: a score is a log-probability. Yields {greedy} and then {beams,
// ended} after each token; returns {greedy, beams}. Each sequence is {text, total, length}.
/** @param {Loaded} loaded @param {{ text: string, heads?: Heads, beam_size: number }} options */
export function* beamTask({ model, tokenizer: said }, { text, heads, beam_size }) {
  const tokenizer = makeTokenizer(said),
    source = tokenizer.source(text);
  const greedy = yield* silently(model, tokenizer, text, { heads });
  yield { greedy, beams: [], ended: [] };
  const state = model.start(source, mostWritten(source), { head_masks: heads?.encoder });
  const told = (/** @type {import("./decoding.js").Told[]} */ sequences) =>
    sequences.map(({ tokens, score }) => ({ text: tokenizer.text(tokens), total: score, length: tokens.length }));
  const search = {
    step: (/** @type {number} */ token, /** @type {DecoderState} */ own) =>
      tidy(() => model.decoder.forward([token], own, { head_masks: heads }).data.slice()),
    copy: (/** @type {DecoderState} */ own) => own.copy(),
    free: (/** @type {DecoderState} */ own) => own.free({ memory: false }),
  };
  const { bos, eos } = tokenizer,
    options = { bos, eos, max_len: mostWritten(source), beam_size, length_penalty: 0 };
  const work = beamSearch(search, state, options);
  try {
    for (;;) {
      const { value, done } = tidy(() => work.next());
      if (done) return { greedy, beams: told(value) };
      yield { greedy, beams: told(value.beams), ended: told(value.ended) };
    }
  } finally {
    work.return([]);
    for (const { cross_attention } of state.caches) cross_attention.free();
  }
}

// Scores of all tokens of a translation at once, as in training, and again with other tokens from number `at` on.
// Returns {pieces, changes}: the changed translation, and how far the scores that chose each token moved at most.
/**
 * @param {Loaded} loaded
 * @param {{ text: string, ids: number[], at: number, seed: number, heads?: Heads }} options
 */
export function* laterTask({ model, tokenizer: said }, { text, ids, at, seed, heads }) {
  const tokenizer = makeTokenizer(said),
    source = tokenizer.source(text),
    random = randomNumbers(seed);
  const V = tokenizer.tokens.length,
    special = [tokenizer.pad, tokenizer.bos, tokenizer.eos, tokenizer.tokens.indexOf("<unk>")];
  const other = (/** @type {number} */ id) => {
    for (;;) {
      const drawnId = Math.floor(random() * V);
      if (drawnId !== id && !special.includes(drawnId)) return drawnId;
    }
  };
  const scores = (/** @type {number[]} */ target) =>
    tidy(() => {
      const state = model.start(source, target.length, { head_masks: heads?.encoder });
      try {
        const inputs = [tokenizer.bos, ...target.slice(0, -1)];
        return model.decoder.forward(inputs, state, { head_masks: heads }).data.slice();
      } finally {
        state.free();
      }
    });
  const changed = ids.map((id, i) => (i < at ? id : other(id)));
  const before = scores(ids);
  yield null;
  const after = scores(changed),
    changes = new Float32Array(ids.length);
  before.forEach((score, i) => {
    const t = Math.floor(i / V);
    changes[t] = Math.max(changes[t], Math.abs(score - after[i]));
  });
  return { pieces: tokenizer.pieces(changed), changes };
}

// Where tokens stand: undefined, as they come; null, nowhere; or an array that is long enough. `shuffled` draws another
// order of the first `length` places by a seed.
/** @param {string} kind @param {number} length @param {number} most */
export function placesOf(kind, length, most, { seed = 1, by = 0 } = {}) {
  if (kind === "order") return undefined;
  if (kind === "none") return null;
  const places = Array.from({ length: most }, (_, i) => (kind === "shifted" ? i + by : i));
  return kind === "shuffled" ? shuffled(places, randomNumbers(seed), length) : places;
}

export const KINDS_OF_PLACES = ["order", "shuffled", "none", "shifted"];

// The translations with each kind of positions, in the encoder, the decoder, or both. Yields {kind, text} for each.
/**
 * @param {Loaded} loaded
 * @param {{ text: string, where: string, seed: number, by: number, heads?: Heads }} options
 */
export function* positionsTask({ model, tokenizer: said }, { text, where, seed, by, heads }) {
  const tokenizer = makeTokenizer(said),
    source = tokenizer.source(text),
    S = source.length;
  for (const kind of KINDS_OF_PLACES) {
    const places = /** @type {NonNullable<How["places"]>} */ ({});
    if (where !== "decoder") places.source = placesOf(kind, S, S, { seed: 2 * seed, by });
    if (where !== "encoder") places.target = placesOf(kind, S, mostWritten(source), { seed: 2 * seed + 1, by });
    const { text: translation } = yield* silently(model, tokenizer, text, { heads, places });
    yield { kind, text: translation };
  }
  return true;
}
