// Tensors of float32 in one memory, which WebAssembly sees too, and their matrix products.
import { KERNELS } from "./kernels.js";
import { plainProducts } from "./plain.js";

const PAGE = 65536; // bytes; memory grows by whole pages
const MOST = 512 * 1024 * 1024; // bytes; a page that wants more is at fault

/** @typedef {{ place: number, stride: number }} Part  of a matrix: where it begins, in bytes; floats from row to row */
/** @typedef {{ shape: number[], data: Float32Array }} Numbers  a tensor, or a copy of one */
/** @typedef {ReturnType<typeof plainProducts>} Products */
/** @typedef {Record<"int8" | "q4_1" | "quantize" | "spread_int8" | "spread_q4_1", (...places: number[]) => void>} Quantized */

const none = /** @type {any} */ (null); // until `prepare` has made it
/**
 * @type {{ wasm: WebAssembly.Memory | null, buffer: ArrayBuffer, floats: Float32Array, top: number,
 *   free: Map<number, number[]>, simd: (Products & Quantized) | null, products: Products }}
 */
const memory = { wasm: null, buffer: none, floats: none, top: 1024, free: new Map(), simd: null, products: none };
/** @type {Set<Tensor>[]} */
const scopes = [];

// Makes the memory and compiles the products, once. Where there is no SIMD, plain JavaScript multiplies; `simd: false`
// asks for that, until the next call. Returns "simd" or "plain".
export async function prepare({ simd = true } = {}) {
  if (!memory.buffer) {
    if (globalThis.WebAssembly) memory.wasm = new WebAssembly.Memory({ initial: 64, maximum: MOST / PAGE });
    see(memory.wasm?.buffer ?? new ArrayBuffer(64 * PAGE));
  }
  if (simd && memory.wasm && !memory.simd) {
    try {
      const bytes = Uint8Array.from(atob(KERNELS), (letter) => letter.charCodeAt(0));
      const { instance } = await WebAssembly.instantiate(bytes, { page: { memory: memory.wasm } });
      memory.simd = /** @type {any} */ (instance.exports);
    } catch {
      // no SIMD here
    }
  }
  const fast = simd && memory.simd;
  memory.products = fast || plainProducts(memory);
  return fast ? "simd" : "plain";
}

/** @param {ArrayBuffer} buffer */
function see(buffer) {
  memory.buffer = buffer;
  memory.floats = new Float32Array(buffer);
}

// Makes room for so many bytes, and some more.
/** @param {number} bytes */
function grow(bytes, factor = 1.25) {
  if (bytes > MOST) throw new RangeError(`the models would need ${Math.round(bytes / 2 ** 20)} MB of memory`);
  const needed = Math.ceil((Math.min(factor * bytes, MOST) - memory.buffer.byteLength) / PAGE);
  if (memory.wasm) {
    memory.wasm.grow(needed); // the views of before are gone: Tensor.data makes new ones
    see(memory.wasm.buffer);
  } else {
    const wider = new ArrayBuffer(memory.buffer.byteLength + needed * PAGE);
    new Uint8Array(wider).set(new Uint8Array(memory.buffer));
    see(wider);
  }
}

// Makes room for so many bytes more, all at once and no more: grown step by step a large model would cost a quarter more.
/** @param {number} bytes */
export function reserve(bytes) {
  const end = memory.top + bytes;
  if (end > memory.buffer.byteLength) grow(end, 1);
}

// The products of quantised matrices, which need SIMD.
export const quantizedProducts = () => /** @type {Quantized} */ (memory.simd);

// Whether an error says that there is no room, in the words of one browser or another.
/** @param {any} error */
export const outOfMemory = (error) =>
  (error instanceof RangeError || error?.name === "InternalError") &&
  /memory|allocation failed|allocation size overflow/i.test(error.message);

// float32 of a shape, in C order. What is in a new one is left from before; `zeros` is not.
export class Tensor {
  /** @type {Float32Array | null} */
  #view = null;
  /** @param {...number} shape */
  constructor(...shape) {
    this.shape = shape;
    this.length = shape.reduce((a, b) => a * b, 1);
    /** @type {Tensor | null} */
    this.gradient = null; // where weights are learned: a tensor, to which `backward` adds
    const least = Math.max(64, this.length * 4),
      step = Math.max(64, 2 ** (Math.floor(Math.log2(least)) - 3)); // few sizes: what is freed serves others
    this.bytes = Math.ceil(least / step) * step;
    const left = memory.free.get(this.bytes);
    const place = left?.pop();
    if (place !== undefined) this.place = place;
    else {
      const end = memory.top + this.bytes;
      if (end > memory.buffer.byteLength) grow(end);
      this.place = memory.top;
      memory.top = end;
    }
    scopes.at(-1)?.add(this);
  }
  /** @param {ArrayLike<number>} values @param {...number} shape */
  static from(values, ...shape) {
    const tensor = new Tensor(...shape);
    tensor.data.set(values);
    return tensor;
  }
  /** @param {...number} shape */
  static zeros(...shape) {
    const tensor = new Tensor(...shape);
    tensor.data.fill(0);
    return tensor;
  }
  // The size of the last dimension.
  get columns() {
    return this.shape[this.shape.length - 1];
  }
  // A view of the numbers, until memory grows: not to be kept.
  get data() {
    if (!this.#view || this.#view.buffer !== memory.buffer)
      this.#view = new Float32Array(memory.buffer, this.place, this.length);
    return this.#view;
  }
  // Numbers of an index of the first dimension.
  /** @param {number} i */
  row(i) {
    const size = this.length / this.shape[0];
    return this.data.subarray(i * size, (i + 1) * size);
  }
  // As the weight of a linear layer, (outputs, inputs): X (T, inputs) by it into rows of a part.
  /** @param {Tensor} X @param {Part} to */
  times(X, to) {
    const [outputs, inputs] = this.shape;
    multiplyTransposed(part(X), part(this), to, X.shape[0], inputs, outputs);
  }
  // Gives its memory back; whoever uses it afterwards gets an error. A second time does nothing.
  free() {
    if (this.place < 0) return;
    const left = memory.free.get(this.bytes);
    if (left) left.push(this.place);
    else memory.free.set(this.bytes, [this.place]);
    this.place = -1;
    this.#view = null;
  }
}

// Does some work, and frees the tensors that it made, all but those it returns (a tensor, or an array or an object of
// them) and those that were kept.
/** @template T @param {() => T} work @returns {T} */
export function tidy(work) {
  const made = /** @type {Set<Tensor>} */ (new Set());
  scopes.push(made);
  let result = /** @type {any} */ (null);
  try {
    result = work();
  } finally {
    scopes.pop();
    for (const tensor of held(result)) {
      if (made.delete(tensor)) scopes.at(-1)?.add(tensor);
    }
    for (const tensor of made) tensor.free();
  }
  return result;
}

// Takes tensors out of what `tidy` will free: they stay until somebody calls `free`.
/** @template T @param {T} result */
export function lasting(result) {
  for (const tensor of held(result)) for (const made of scopes) made.delete(tensor);
  return result;
}

/** @param {any} result @returns {Tensor[]} */
function held(result) {
  if (result instanceof Tensor) return [result];
  if (result === null || typeof result !== "object" || ArrayBuffer.isView(result)) return [];
  return Object.values(result).flatMap(held);
}

// C[n, m] = A[n, k] B[k, m], and with B[m, k] transposed, and with A[k, n] transposed, which may add to what is in C.
/** @typedef {(A: Part, B: Part, C: Part, n: number, k: number, m: number, add?: boolean) => void} Product */
/** @type {Product} */
export const multiply = (A, B, C, n, k, m) =>
  memory.products.nn(A.place, A.stride, B.place, B.stride, C.place, C.stride, n, k, m);
/** @type {Product} */
export const multiplyTransposed = (A, B, C, n, k, m) =>
  memory.products.nt(A.place, A.stride, B.place, B.stride, C.place, C.stride, n, k, m);
/** @type {Product} */
export const multiplyFirstTransposed = (A, B, C, n, k, m, add = false) =>
  memory.products.tn(A.place, A.stride, B.place, B.stride, C.place, C.stride, n, k, m, add);

// A part of a matrix for the products: from a row and a column on.
/** @param {Tensor} tensor @returns {Part} */
export const part = (tensor, row = 0, column = 0) => {
  const stride = tensor.columns;
  return { place: tensor.place + 4 * (row * stride + column), stride };
};

// What the memory holds, in bytes: for a test that nothing is left behind.
export const memoryUsed = () =>
  memory.top - [...memory.free].reduce((sum, [bytes, places]) => sum + bytes * places.length, 0);
