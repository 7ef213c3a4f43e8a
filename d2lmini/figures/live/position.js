// Position encodings: sines that are added, and rotations of queries and keys. Counted in float64.
import { Tensor } from "./tensor.js";

const frequency = (j, size, base) => base ** ((-2 * j) / size);

// Sines and cosines of positions: (positions, h), as `sinusoidal`.
/** @param {number[]} positions @param {number} h */
export function sinusoidal(positions, h) {
  const P = new Tensor(positions.length, h);
  positions.forEach((position, i) => {
    const row = P.row(i);
    for (let j = 0; j < h; j++) {
      const angle = position * frequency(j >> 1, h, 10000);
      row[j] = j % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  });
  return P;
}

// Slopes of ALiBi, one a head: a score loses so much for each token that its key is before its query.
/** @param {number} num_heads */
export const alibiSlopes = (num_heads) =>
  Array.from({ length: num_heads }, (_, i) => 2 ** ((-8 * (i + 1)) / num_heads));

export class RotaryEmbedding {
  /** @param {number} head_size */
  constructor(head_size, max_len = 1000, base = 10000) {
    this.head_size = head_size;
    this.base = base;
    /** @type {number[]} */
    this.cos = [];
    /** @type {number[]} */
    this.sin = [];
    this.#reach(max_len);
  }
  #reach(length) {
    const pairs = this.head_size / 2;
    for (let i = this.cos.length / pairs; i < length; i++)
      for (let j = 0; j < pairs; j++) {
        const angle = i * frequency(j, this.head_size, this.base);
        this.cos.push(Math.cos(angle));
        this.sin.push(Math.sin(angle));
      }
  }
  // Turns, in place, the heads of a position: `row` has H * head_size numbers. `back` undoes it, and is so the way of
  // gradients.
  /** @param {Float32Array} row @param {number} position */
  turn(row, position, back = false) {
    const pairs = this.head_size / 2;
    this.#reach(position + 1);
    for (let start = 0; start < row.length; start += this.head_size)
      for (let j = 0; j < pairs; j++) {
        const cos = this.cos[position * pairs + j],
          sin = (back ? -1 : 1) * this.sin[position * pairs + j];
        const even = row[start + 2 * j],
          odd = row[start + 2 * j + 1];
        row[start + 2 * j] = even * cos - odd * sin;
        row[start + 2 * j + 1] = even * sin + odd * cos;
      }
  }
}
