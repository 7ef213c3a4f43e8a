// What a large model has read last. Its keys and values serve every text that begins with the same tokens.
import { floatProducts } from "./quantized.js";
import { tidy } from "./tensor.js";
import { tooLong } from "./tokenizer_tools.js";

const AT_ONCE = globalThis.document ? 8 : 32; // tokens that are read at once: without a worker the page waits for them

/**
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{ block: number, head?: number | null }[]} Off
 * @typedef {{ off?: Off, float_products?: boolean, from?: number,
 *   seen?: (block: number, weights: Tensor, at: number) => void, after?: (i: number, X: Tensor, at: number) => void,
 *   scored?: (scores: Tensor, at: number) => void }} Options
 */

export class PrefixCache {
  /** @param {import("./gpt.js").GPT} model */
  constructor(model) {
    this.model = model;
    /** @type {number[]} */
    this.tokens = []; // that the state has
    this.how = ""; // what was switched off while it was read
    this.state = model.empty_state();
  }

  // Reads tokens, in slices: yields how many are read, returns the scores (V,) of what follows the last of them.
  //   off: [{block, head}], left out; without a head, the whole block. float_products: see quantized.js.
  //   from: the first of the tokens that must be read now, even where its keys are there already.
  //   seen(block, weights, at), after(i, X, at), scored(scores, at): as `GPT.extend` has them, of the tokens from
  //   `at` on; scored, which wants scores of them all, is called with a tensor (T, V).
  /** @param {number[]} tokens @param {Options} options @returns {Generator<number, Float32Array, void>} */
  *read(tokens, { off = [], float_products = false, from = tokens.length - 1, seen, after, scored } = {}) {
    const { head_masks, skip } = this.#switches(off),
      how = JSON.stringify([off, float_products]);
    if (tokens.length > this.model.config.max_len) throw tooLong(tokens.length, this.model.config.max_len);
    let same = 0;
    if (how === this.how) while (same < tokens.length && tokens[same] === this.tokens[same]) same++;
    const first = Math.max(0, Math.min(same, from, tokens.length - 1));
    this.#keep(first);
    this.how = how;
    let scores = new Float32Array(0);
    for (let at = first; at < tokens.length; at += AT_ONCE) {
      const part = tokens.slice(at, at + AT_ONCE),
        last = at + part.length === tokens.length;
      floatProducts(float_products);
      tidy(() => {
        const found = this.model.extend(part, this.state, {
          head_masks,
          skip,
          seen: seen && ((block, weights) => seen(block, weights, at)),
          after: after && ((i, X) => after(i, X, at)),
          last: scored ? part.length : Number(last),
        });
        scored?.(found, at);
        if (last) scores = found.row(found.shape[0] - 1).slice();
      });
      this.tokens.push(...part);
      if (!last) yield at + part.length;
    }
    return scores;
  }

  /** @param {number} length */
  #keep(length) {
    this.tokens.length = length;
    this.state.first(length);
  }

  // As `GPT.extend` takes it. Throws a RangeError where there is no such block or head.
  /** @param {Off} off */
  #switches(off) {
    const { num_blks, num_heads } = this.model.config,
      inside = (/** @type {number} */ i, size) => Number.isInteger(i) && i >= 0 && i < size,
      masks = /** @type {Map<number, Float32Array>} */ (new Map()),
      skip = /** @type {number[]} */ ([]);
    for (const { block, head = null } of off) {
      if (!inside(block, num_blks)) throw new RangeError(`there is no block ${block}, only 0 to ${num_blks - 1}`);
      if (head === null) skip.push(block);
      else if (!inside(head, num_heads)) throw new RangeError(`there is no head ${head}, only 0 to ${num_heads - 1}`);
      else {
        const mask = masks.get(block) ?? new Float32Array(num_heads).fill(1);
        mask[head] = 0;
        masks.set(block, mask);
      }
    }
    const head_masks = Array.from({ length: num_blks }, (_, i) => masks.get(i) ?? null);
    return { head_masks, skip };
  }

  free() {
    this.state.free();
    this.tokens = [];
  }
}
