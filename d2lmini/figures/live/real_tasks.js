// What a reader can ask of the real language model. The options that all tasks take: the text, one of {text}, {messages}
// and {tokens}; `off` and `float_products`, as prefix_cache.js has them.
import { randomNumbers } from "./filters.js";
import { likeliest, NextToken } from "./next_token.js";
import { Tensor, tidy } from "./tensor.js";
import { makeTokenizer } from "./tokenizers.js";

/**
 * @typedef {import("./chat_tokenizer.js").ChatTokenizer} ChatTokenizer
 * @typedef {import("./gpt.js").GPT} GPT
 * @typedef {import("./tensor.js").Numbers} Numbers
 * @typedef {{ model: GPT, config: GPT["config"], tokenizer: any, reading: import("./prefix_cache.js").PrefixCache }} Loaded
 * @typedef {Parameters<ChatTokenizer["source"]>[0]} Text
 * @typedef {Text & { off?: import("./prefix_cache.js").Off, float_products?: boolean, top?: number }} Options
 * @typedef {{ heads?: [number, number][], layers?: boolean }} Watched
 */

const BELIEVED = 5; // tokens that each block is asked for

// The likeliest tokens of scores: {ids, pieces, p}, p the model's own; `drawn`: after the filters.
/** @param {NextToken} next @param {number} most @param {ChatTokenizer} words */
function told(next, most, words) {
  const ids = likeliest(next.scores, most);
  return {
    ids,
    pieces: words.pieces(ids),
    p: ids.map((id) => next.own(id)),
    drawn: ids.map((id) => next.drawnWith(id)),
  };
}

// What is seen on the way, by the place in the text: `looks(at)`, how each of `heads`, pairs of a block and a head, looks
// from there at all places up to it; `layers(at)`, what each block would say there. `options` is for `PrefixCache.read`.
/** @param {Loaded} loaded @param {ChatTokenizer} words @param {Watched} watched */
function watchReading({ model }, words, { heads = [], layers = false }, from = 0) {
  const { num_blks, num_heads } = model.config,
    rows = heads.map(() => /** @type {Map<number, Float32Array>} */ (new Map())),
    states = /** @type {Map<number, Float32Array[]>} */ (new Map());
  for (const [block, head] of heads)
    if (!(block >= 0 && block < num_blks && head >= 0 && head < num_heads))
      throw new RangeError(`there is no head ${head} of block ${block}`);
  /** @param {number} block @param {Numbers} weights @param {number} at */
  function seen(block, { shape: [, T, S], data }, at) {
    heads.forEach(([wanted, head], which) => {
      if (wanted !== block) return;
      for (let i = Math.max(0, from - at); i < T; i++) {
        const row = (head * T + i) * S;
        rows[which].set(at + i, data.slice(row, row + at + i + 1));
      }
    });
  }
  /** @param {number} i @param {Tensor} X @param {number} at */
  function after(i, X, at) {
    for (let t = Math.max(0, from - at); t < X.shape[0]; t++) {
      const all = states.get(at + t) ?? [];
      all[i] = X.row(t).slice();
      states.set(at + t, all);
    }
  }
  /** @template T @param {Map<number, T>} map @param {number} at */
  function take(map, at) {
    const found = map.get(at);
    map.delete(at);
    return found;
  }
  return {
    options: { seen: heads.length ? seen : undefined, after: layers ? after : undefined },
    // of a block that is left out: nothing
    looks: (/** @type {number} */ at) => rows.map((row) => take(row, at) ?? new Float32Array(at + 1)),
    layers: (/** @type {number} */ at) => (layers ? believedBy(model, take(states, at) ?? [], words) : null),
  };
}

// What the states of a place after each number of blocks would say, through the last norm and the last layer.
/** @param {GPT} model @param {Float32Array[]} states @param {ChatTokenizer} words */
function believedBy(model, states, words) {
  return tidy(() => {
    const X = new Tensor(states.length, model.config.num_hiddens);
    states.forEach((state, i) => X.row(i).set(state));
    const scores = model.scores(X);
    return states.map((_, i) => {
      const { ids, pieces, p } = told(new NextToken(scores.row(i)), BELIEVED, words);
      return { ids, pieces, p };
    });
  });
}

/** @param {{ tokenizer: any }} loaded @param {{ messages?: Text["messages"], text?: string }} options */
export function* tokenizeTask(loaded, { messages = null, text = "" }) {
  const words = makeTokenizer(loaded.tokenizer),
    ids = /** @type {number[]} */ (messages ? words.encodeChat(messages) : words.encode(text));
  return { ids, pieces: words.pieces(ids), special: ids.map((id) => words.special.has(id)) };
}

// Reads a text, then draws up to `count` tokens more and reads each of them.
//   filters, seed, draws: as `writeTask`. top: how many of what may come next are told. heads, layers: `watchReading`.
// Steps: {reading: {done, total}} while it reads, then {at, token, text, written, p, next, milliseconds, looks, layers} of
// the text's last token and of each that is written: its place; what it adds to the text; the model's own probability of
// it; what may come next, as `told`, null after a stop token, which is not read.
// Returns {why: "stop", "count" or "context"; tokens, all; prompt, how many were given; text, what was written; draws}.
/**
 * @param {Loaded} loaded
 * @param {Options & Watched & { count?: number, filters?: import("./filters.js").Filters, seed?: number, draws?: number }} options
 */
export function* realWriteTask(loaded, options) {
  const { count = 100, filters = {}, seed = 1, draws = 0, top = 10, off, float_products } = options;
  const { reading, config } = loaded,
    words = makeTokenizer(loaded.tokenizer),
    tokens = words.source(options),
    prompt = tokens.length,
    random = randomNumbers(seed),
    add = words.writer();
  for (let i = 0; i < draws; i++) random();
  let text = "",
    step = { at: prompt - 1, token: tokens.at(-1), text: "", written: false, p: /** @type {number | null} */ (null) };
  for (;;) {
    const from = tokens.length - 1,
      watching = watchReading(loaded, words, options, from),
      before = performance.now(),
      read = reading.read(tokens, { off, float_products, from, ...watching.options });
    let turn = read.next();
    for (; !turn.done; turn = read.next()) yield { reading: { done: turn.value, total: tokens.length } };
    const milliseconds = performance.now() - before,
      next = new NextToken(turn.value, filters);
    const shown = { next: told(next, top, words), looks: watching.looks(from), layers: watching.layers(from) };
    yield { ...step, ...shown, milliseconds };
    const written = tokens.length - prompt;
    if (written === count) return end("count");
    if (tokens.length === config.max_len) return end("context");
    const token = next.draw(random),
      added = add(token);
    text += added;
    tokens.push(token);
    step = { at: tokens.length - 1, token, text: added, written: true, p: next.own(token) };
    if (words.isStop(token)) {
      yield { ...step, next: null, milliseconds: 0, looks: [], layers: null };
      return end("stop");
    }
  }

  /** @param {"count" | "context" | "stop"} why */
  function end(why) {
    return { why, tokens, prompt, text, draws: draws + tokens.length - prompt };
  }
}

// Reads a whole text, or what is from place `from` on, and tells of each place how heads look and what blocks would say.
// Steps: {rows: [{at, token, piece, looks, layers}]}.
/** @param {Loaded} loaded @param {Options & Watched & { from?: number }} options */
export function* realLookTask(loaded, options) {
  const { from = 0, off, float_products } = options,
    words = makeTokenizer(loaded.tokenizer),
    tokens = words.source(options),
    pieces = words.pieces(tokens);
  if (!(from >= 0 && from < tokens.length)) throw new RangeError(`there is no place ${from} of ${tokens.length}`);
  const watching = watchReading(loaded, words, options, from),
    read = loaded.reading.read(tokens, { off, float_products, from, ...watching.options });
  let at = from;
  for (;;) {
    const { value, done } = read.next(),
      end = done ? tokens.length : value;
    if (at >= end) yield { rows: [] }; // what is before `from`
    for (; at < end; at++) {
      const row = { at, token: tokens[at], piece: pieces[at], looks: watching.looks(at), layers: watching.layers(at) };
      yield { rows: [row] };
    }
    if (done) return null;
  }
}

// What each token of a text costs, given those before it.
//   top: how many of the expected ones are told.
// Steps: {rows: [{at, token, piece, nats, next}]}, nats null and next null of the first. Returns {nats, tokens}: the mean,
// and of how many.
/** @param {Loaded} loaded @param {Options} options */
export function* realLossesTask(loaded, options) {
  const { top = BELIEVED, off, float_products } = options,
    words = makeTokenizer(loaded.tokenizer),
    tokens = words.source(options),
    pieces = words.pieces(tokens);
  /** @typedef {{ ids: number[], pieces: string[], p: number[] } | null} Expected */
  /** @type {{ at: number, token: number, piece: string, nats: number | null, next: Expected }[]} */
  let rows = [{ at: 0, token: tokens[0], piece: pieces[0], nats: null, next: null }],
    total = 0;
  const scored = (/** @type {Tensor} */ scores, /** @type {number} */ start) => {
    for (let i = 0; i < scores.shape[0] && start + i + 1 < tokens.length; i++) {
      const at = start + i + 1,
        next = new NextToken(scores.row(i)),
        nats = -Math.log(next.own(tokens[at]));
      const { ids, pieces: names, p } = told(next, top, words);
      rows.push({ at, token: tokens[at], piece: pieces[at], nats, next: { ids, pieces: names, p } });
      total += nats;
    }
  };
  for (const _ of loaded.reading.read(tokens, { off, float_products, from: 0, scored })) {
    yield { rows };
    rows = [];
  }
  yield { rows };
  return { nats: tokens.length > 1 ? total / (tokens.length - 1) : null, tokens: tokens.length - 1 };
}
