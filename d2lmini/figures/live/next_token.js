// What comes next, where the vocabulary is large: as filters.js has it, without putting all tokens in order.

const FIRST_LOOK = 64; // so many of the likeliest tokens are looked at first, to find those that top_p keeps

// Indices of the largest numbers, so many, in their order; the first of equals first.
/** @param {Float32Array} numbers @param {number} most */
export function likeliest(numbers, most) {
  const best = /** @type {number[]} */ ([]);
  most = Math.min(most, numbers.length);
  for (let i = 0; i < numbers.length; i++) {
    if (best.length === most) {
      if (!(numbers[i] > numbers[best[most - 1]])) continue;
      best.pop();
    }
    let low = 0,
      high = best.length; // to be put behind all that are not smaller
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[best[middle]] < numbers[i]) high = middle;
      else low = middle + 1;
    }
    best.splice(low, 0, i);
  }
  return best;
}

export class NextToken {
  // Of scores (V,); the filters are those of `filtered`.
  /** @param {Float32Array} scores @param {import("./filters.js").Filters} filters */
  constructor(scores, { temperature = 1, top_k = null, top_p = null, min_p = null } = {}) {
    this.scores = scores;
    this.top = scores.reduce((most, score) => Math.max(most, score), Number.NEGATIVE_INFINITY);
    this.total = this.#sum(1);
    this.temperature = temperature;
    if (temperature === 0) this.kept = likeliest(scores, 1);
    else this.kept = this.#kept(top_k, top_p, min_p);
    this.keptTotal = this.kept ? this.kept.reduce((sum, id) => sum + this.#power(id), 0) : this.#sum(temperature);
    this.isKept = this.kept && new Set(this.kept);
  }

  /** @param {number} temperature */
  #sum(temperature) {
    const { scores, top } = this;
    let total = 0;
    for (let i = 0; i < scores.length; i++) total += Math.exp((scores[i] - top) / temperature);
    return total;
  }

  /** @param {number} id */
  #power(id) {
    return this.temperature === 0 ? 1 : Math.exp((this.scores[id] - this.top) / this.temperature);
  }

  // The tokens that can be drawn, in the order of their ids; null: all.
  /** @param {number | null} top_k @param {number | null} top_p @param {number | null} min_p */
  #kept(top_k, top_p, min_p) {
    let kept = top_k ? likeliest(this.scores, top_k) : null;
    if (top_p && top_p < 1) kept = this.#nucleus(kept, top_p);
    if (min_p) {
      const least = Math.log(min_p),
        ids = kept ?? Array.from(this.scores.keys());
      kept = ids.filter((id) => (this.scores[id] - this.top) / this.temperature >= least);
    }
    return kept?.sort((a, b) => a - b) ?? null;
  }

  // The first of the likeliest that have together what top_p asks for; `order`: all that are left, null: all there are.
  /** @param {number[] | null} order @param {number} top_p */
  #nucleus(order, top_p) {
    const V = this.scores.length,
      total = order ? order.reduce((sum, id) => sum + this.#power(id), 0) : this.#sum(this.temperature);
    for (let look = FIRST_LOOK; ; look *= 8) {
      const ids = order ?? likeliest(this.scores, look);
      let before = 0; // what the likelier ones have
      for (let i = 0; i < ids.length; i++) {
        const share = this.#power(ids[i]) / total;
        if ((i && before >= top_p - 4 * 2 ** -23) || share === 0) return ids.slice(0, i);
        before += share;
      }
      if (order || look >= V) return ids;
    }
  }

  // The model's own probability of a token.
  /** @param {number} id */
  own(id) {
    return Math.exp(this.scores[id] - this.top) / this.total;
  }

  // What it is drawn with.
  /** @param {number} id */
  drawnWith(id) {
    return this.isKept && !this.isKept.has(id) ? 0 : this.#power(id) / this.keptTotal;
  }

  // A token, as `drawn` of filters.js draws it.
  /** @param {() => number} random */
  draw(random) {
    let left = random(),
      last = 0;
    const ids = this.kept ?? this.scores.keys();
    for (const id of ids) {
      const p = this.#power(id) / this.keptTotal;
      if (!p) continue;
      last = id;
      left -= p;
      if (left < 0) break;
    }
    return last;
  }
}
