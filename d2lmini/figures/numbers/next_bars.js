// The likeliest next tokens: what the model gives each, and what is drawn from.
import { filtered, ranked } from "../live/filters.js";

/**
 * The `most` likeliest tokens of scores (V,) before and after filters; how many can be drawn of all, and what
 * probability the model gives those that are not among them.
 * @param {ArrayLike<number>} logits
 * @param {Parameters<typeof filtered>[1]} filters
 * @param {number} most
 */
export function likeliest(logits, filters, most) {
  const own = filtered(logits),
    after = filtered(logits, filters),
    order = ranked(logits);
  return {
    tokens: order.slice(0, most).map((id) => ({ id, own: own[id], after: after[id] })),
    drawable: after.filter(Boolean).length,
    rest: order.slice(most).reduce((sum, id) => sum + own[id], 0),
  };
}
