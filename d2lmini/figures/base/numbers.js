// Numbers on their way to a figure, and softmax.

/**
 * The numbers that pack() of packing.py wrote; shares from 0 to 1 come as 0 to 255.
 * @template {ArrayBufferView} [Numbers=Uint8Array]
 * @param {string} text
 * @param {new (buffer: ArrayBuffer) => Numbers} [Kind]
 */
export function unpack(text, Kind = /** @type {any} */ (Uint8Array)) {
  return new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

/**
 * Softmax of scores / temperature; minus infinity marks a masked score, a row of nothing else gives zeros.
 * @param {number[]} scores
 * @param {number} [temperature]
 */
export function softmax(scores, temperature = 1) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp((score - top) / temperature));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}
