// Matrices in 8 or in 4 bits, as published weights come: kept as they are, and multiplied with numbers rounded to 16 bits.
import { lasting, multiplyTransposed, part, quantizedProducts, Tensor } from "./tensor.js";
import { half } from "./weights.js";

const BLOCK = 32; // weights or numbers of X with a scale of their own
const SPREAD = 64; // rows that are spread into floats at a time
const exact = { floats: false };

/** @typedef {import("./tensor.js").Part} Part */
/** @typedef {{ x: Tensor, of: Tensor }} Rounded */

// Whether products are those of floats, as PyTorch has them: all weights are spread for each. Some ten times as slow.
/** @param {boolean} wanted */
export function floatProducts(wanted) {
  exact.floats = wanted;
}

// X (T, k) as integers of 16 bits; of each 32 a scale, and their sum times that.
/** @param {Tensor} X @returns {Rounded} */
function rounded(X) {
  const size = X.length,
    [x, of] = [new Tensor(size / 2), new Tensor(size / BLOCK, 2)];
  if (size) quantizedProducts().quantize(X.place, x.place, of.place, size); // rows are whole blocks
  return { x, of };
}

// What both kinds share; `product` and `spread` are their own. It takes the place of a tensor as the weight of a `Linear`
// or an `Embedding`.
class QuantizedMatrix {
  /** @param {number[]} shape @param {number} bytes */
  constructor([outputs, inputs], bytes) {
    if (inputs % BLOCK) throw new RangeError(`rows of ${inputs} weights, expected whole blocks of ${BLOCK}`);
    this.shape = [outputs, inputs];
    this.room = lasting(new Tensor(bytes / 4));
  }
  // Where its bytes begin from `offset` on: a view, until memory grows.
  /** @param {number} offset @param {number} length */
  bytes(offset, length) {
    return new Uint8Array(this.room.data.buffer, this.room.place + offset, length);
  }
  // X, rounded, by it, T rows.
  /** @param {Rounded} _X @param {Part} _to @param {number} _T */
  product(_X, _to, _T) {}
  // Rows as floats into a place.
  /** @param {number} _row @param {number} _rows @param {number} _place */
  spread(_row, _rows, _place) {}
  /** @param {Tensor} X @param {Part} to */
  times(X, to) {
    if (exact.floats) this.#timesFloats(X, to);
    else this.product(rounded(X), to, X.shape[0]);
  }
  /** @param {Tensor} X @param {Part} to */
  #timesFloats(X, to) {
    const [outputs, inputs] = this.shape,
      rows = new Tensor(Math.min(SPREAD, outputs), inputs);
    for (let i = 0; i < outputs; i += SPREAD) {
      const count = Math.min(SPREAD, outputs - i);
      this.spread(i, count, rows.place);
      const columns = { place: to.place + 4 * i, stride: to.stride };
      multiplyTransposed(part(X), part(rows), columns, X.shape[0], inputs, count);
    }
    rows.free();
  }
  // A row as floats, of its own.
  /** @param {number} i */
  row(i) {
    const tensor = new Tensor(this.shape[1]);
    this.spread(i, 1, tensor.place);
    const copy = tensor.data.slice();
    tensor.free();
    return copy;
  }
  free() {
    this.room.free();
  }
}

// 8 bits and a scale a row.
export class Int8Matrix extends QuantizedMatrix {
  /** @param {number[]} shape */
  constructor(shape) {
    const [outputs, inputs] = shape;
    super(shape, outputs * inputs + 4 * outputs);
    this.scales = outputs * inputs; // where they begin
  }
  // Rows from `row` on, from a buffer: integers, then the scales in float32.
  /** @param {number} row @param {number} rows @param {ArrayBuffer} buffer @param {number} at */
  put(row, rows, buffer, at) {
    const inputs = this.shape[1],
      size = rows * inputs;
    this.bytes(row * inputs, size).set(new Uint8Array(buffer, at, size));
    this.bytes(this.scales + 4 * row, 4 * rows).set(new Uint8Array(buffer, at + size, 4 * rows));
  }
  /** @param {Rounded} X @param {Part} to @param {number} T */
  product({ x, of }, to, T) {
    const [outputs, inputs] = this.shape,
      { place } = this.room;
    quantizedProducts().int8(place, place + this.scales, x.place, of.place, to.place, to.stride, T, inputs, outputs);
  }
  /** @param {number} row @param {number} rows @param {number} place */
  spread(row, rows, place) {
    const inputs = this.shape[1],
      from = this.room.place;
    quantizedProducts().spread_int8(from + row * inputs, from + this.scales + 4 * row, place, inputs, rows);
  }
}

// Blocks of 32: 4 bits each, a scale and a minimum.
export class Q4Matrix extends QuantizedMatrix {
  /** @param {number[]} shape */
  constructor(shape) {
    const size = shape[0] * shape[1];
    super(shape, size / 2 + (8 * size) / BLOCK);
    this.scales = size / 2; // where they begin
    this.minima = this.scales + (4 * size) / BLOCK;
  }
  // Rows from `row` on, from a buffer: 16 bytes a block, then all scales, then all minima, in float16.
  /** @param {number} row @param {number} rows @param {ArrayBuffer} buffer @param {number} at */
  put(row, rows, buffer, at) {
    const inputs = this.shape[1],
      size = rows * inputs,
      blocks = size / BLOCK,
      first = (row * inputs) / BLOCK;
    this.bytes((row * inputs) / 2, size / 2).set(new Uint8Array(buffer, at, size / 2));
    const halves = new Uint16Array(buffer, at + size / 2, 2 * blocks),
      floats = halfTable();
    [this.scales, this.minima].forEach((start, which) => {
      const to = this.room.data,
        place = start / 4 + first;
      for (let i = 0; i < blocks; i++) to[place + i] = floats[halves[which * blocks + i]];
    });
  }
  /** @param {Rounded} X @param {Part} to @param {number} T */
  product({ x, of }, to, T) {
    const [outputs, inputs] = this.shape,
      { place } = this.room;
    quantizedProducts().q4_1(
      place,
      place + this.scales,
      place + this.minima,
      x.place,
      of.place,
      to.place,
      to.stride,
      T,
      inputs,
      outputs,
    );
  }
  /** @param {number} row @param {number} rows @param {number} place */
  spread(row, rows, place) {
    const inputs = this.shape[1],
      first = (4 * row * inputs) / BLOCK,
      from = this.room.place;
    quantizedProducts().spread_q4_1(
      from + (row * inputs) / 2,
      from + this.scales + first,
      from + this.minima + first,
      place,
      inputs,
      rows,
    );
  }
}

// All numbers of 16 bits.
let halfFloats = /** @type {Float32Array | null} */ (null);
function halfTable() {
  halfFloats ??= Float32Array.from({ length: 65536 }, (_, bits) => half(bits));
  return halfFloats;
}
