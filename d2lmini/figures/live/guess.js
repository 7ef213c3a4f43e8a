// What an encoder believes about a hidden piece of a sentence, and where it looks from there.
import { softmaxRow } from "./activations.js";
import { ranked } from "./filters.js";
import { Tensor, tidy } from "./tensor.js";
import { makeTokenizer } from "./tokenizers.js";

/**
 * @typedef {{ tokenizer: any, config: import("./bert.js").BERTConfig }} Loaded
 * @typedef {Loaded & { model: import("./bert.js").BERTForPretraining }} LoadedModel
 */

// A sentence as both encoders read it: {ids, pieces} with [CLS] and [SEP]; mask, an id; unknown, whether it has [UNK].
/** @param {Loaded} loaded @param {{ text: string }} options */
// biome-ignore lint/correctness/useYield: a task is a generator, and this one has no steps
export function* piecesTask({ tokenizer, config }, { text }) {
  const words = makeTokenizer(tokenizer),
    ids = words.encode(text, config.max_len);
  return { ids, pieces: words.pieces(ids), mask: words.mask, unknown: ids.includes(words.unk) };
}

// The belief about the piece at a place of `ids`, which has [MASK] there; `truth`: what stood there.
//   causal: the model has learnt the next token. It reads what is before the place alone, and the last output counts.
// Returns {best: {ids, pieces, p}, the likeliest `top`; truth: {piece, p, rank}, the rank from 1; looks: {size, weights}},
// the attention of each head of each block from where the output is: (blocks, heads, tokens read).
/**
 * @param {LoadedModel} loaded
 * @param {{ ids: number[], place: number, truth: number, causal?: boolean, top?: number }} options
 */
export function* guessTask({ model, tokenizer, config }, { ids, place, truth, causal = false, top = 10 }) {
  if (ids.length > config.max_len)
    throw new Error(`the text is too long: ${ids.length} tokens, but the model reads at most ${config.max_len}`);
  const read = causal ? ids.slice(0, place) : ids,
    from = causal ? place - 1 : place,
    looks = /** @type {Float32Array[]} */ ([]);
  /** @type {import("./multi_head.js").SeenBy} */
  const seen = (_, { shape: [heads, T, S], data }) => {
    for (let head = 0; head < heads; head++) looks.push(data.slice((head * T + from) * S, (head * T + from + 1) * S));
  };
  const probabilities = tidy(() => {
    const X = model.bert.forward(read, { causal, seen });
    return softmaxRow(model.mlm.forward(Tensor.from(X.row(from), 1, X.shape[1])).row(0)).slice();
  });
  const best = ranked(probabilities).slice(0, top),
    pieces = makeTokenizer(tokenizer).pieces([...best, truth]),
    p = probabilities[truth];
  const weights = new Float32Array(looks.length * read.length);
  looks.forEach((row, i) => weights.set(row, i * read.length));
  return {
    best: { ids: best, pieces: pieces.slice(0, -1), p: best.map((id) => probabilities[id]) },
    truth: { piece: pieces.at(-1), p, rank: 1 + probabilities.filter((other) => other > p).length },
    vocabulary: probabilities.length,
    looks: { size: [config.num_blks, config.num_heads, read.length], weights },
  };
}
