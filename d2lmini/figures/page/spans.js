// A text as spans that stand in lines.

/**
 * The span above or below a chosen one.
 * @param {ArrayLike<{ offsetTop: number, offsetLeft: number }>} nodes
 * @param {number} chosen
 * @param {number} down  1 or -1
 */
export function spanBeside(nodes, chosen, down) {
  const { offsetTop: top, offsetLeft: x } = nodes[chosen],
    far = (/** @type {number} */ i) => Math.abs(nodes[i].offsetLeft - x);
  let best = chosen,
    line = /** @type {number | null} */ (null);
  for (let i = chosen + down; nodes[i]; i += down) {
    if (nodes[i].offsetTop === top) continue;
    line ??= nodes[i].offsetTop;
    if (nodes[i].offsetTop !== line) break;
    if (best === chosen || far(i) < far(best)) best = i;
  }
  return best;
}

/**
 * The background of a span for a share from 0 to 1; small ones are to be seen, and below 0.005 there is none.
 * @param {number} share
 */
export const spanShade = (share, colour = "--blue") =>
  share >= 0.005 ? `color-mix(in srgb, var(${colour}) ${(85 * share ** 0.6).toFixed(0)}%, transparent)` : "";
