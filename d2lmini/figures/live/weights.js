// The weights that `python -m d2lmini export` writes: safetensors, matrices in 8 bits with a scale a row, or in 16.
import { lasting, Tensor } from "./tensor.js";

const FORMAT = "d2lmini weights 1"; // as models/weights/files.py has it
const BYTES = { I8: 1, F16: 2, F32: 4 };

/** @typedef {{ dtype: keyof typeof BYTES, shape: number[], data_offsets: [number, number] }} Kept  of a tensor */

// Reads a file. Returns its metadata, parsed; `weights(name)`: a tensor of float32, made once, null where there is none;
// and `free()`, which gives all of these back.
// Throws an Error that says what is wrong with the file.
/** @param {ArrayBuffer} buffer */
export function readWeights(buffer) {
  const { metadata, tensors, data } = header(buffer);
  const made = /** @type {Map<string, Tensor>} */ (new Map());
  /** @param {string} name */
  function weights(name) {
    if (!(name in tensors)) return null;
    const tensor = made.get(name) ?? lasting(asTensor(name));
    made.set(name, tensor);
    return tensor;
  }
  /** @param {Kept} kept */
  function numbers({ dtype, data_offsets: [start, end] }) {
    const bytes = data.slice(start, end).buffer; // a copy: a view would have to be aligned
    if (dtype === "I8") return new Int8Array(bytes);
    return dtype === "F16" ? Float32Array.from(new Uint16Array(bytes), half) : new Float32Array(bytes);
  }
  /** @param {string} name */
  function asTensor(name) {
    const { dtype, shape } = tensors[name],
      tensor = Tensor.from(numbers(tensors[name]), ...shape);
    if (dtype === "I8") {
      const scales = numbers(tensors[`${name}.scale`]);
      scales.forEach((scale, i) => {
        const row = tensor.row(i);
        for (let j = 0; j < row.length; j++) row[j] *= scale;
      });
    }
    return tensor;
  }
  function free() {
    for (const tensor of made.values()) tensor.free();
    made.clear();
  }
  return { metadata, weights, free };
}

/** @param {ArrayBuffer} buffer */
function header(buffer) {
  const foreign = (/** @type {string} */ why) => new Error(`these are no weights of this book: ${why}`);
  if (buffer.byteLength < 8) throw foreign("the file is too short");
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > buffer.byteLength - 8) throw foreign("the file is cut, or no safetensors file");
  let tensors;
  try {
    tensors = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    if (!tensors || typeof tensors !== "object") throw tensors;
  } catch {
    throw foreign("its beginning is damaged");
  }
  const { __metadata__: texts, ...others } = tensors,
    data = new Uint8Array(buffer, 8 + length);
  if (!texts?.model || !texts.format) throw foreign("nothing says of which model they are");
  if (texts.format !== FORMAT) throw new Error(`the weights are of another version: ${texts.format}`);
  if (crc32(data) !== Number(texts.crc32)) throw new Error("the weights were cut or damaged on their way");
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(others)) {
    const [start, end] = data_offsets ?? [],
      size = shape?.reduce((a, b) => a * b, 1) * BYTES[dtype];
    if (end - start !== size || !(start >= 0 && end <= data.length))
      throw foreign(`${name} does not fit into the file`);
    if (dtype === "I8" && !(`${name}.scale` in others)) throw foreign(`${name} has no scales`);
  }
  const parse = (/** @type {any} */ text) => (/^[{["]/.test(text) ? JSON.parse(text) : text);
  const metadata = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, parse(text)]));
  return { metadata, tensors: /** @type {Record<string, Kept>} */ (others), data };
}

// A number of 16 bits as float32.
/** @param {number} bits */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1,
    exponent = (bits >> 10) & 0x1f,
    fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

/** @param {Uint8Array} bytes */
export function crc32(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, i) => {
    for (let bit = 0; bit < 8; bit++) i = i & 1 ? 0xedb88320 ^ (i >>> 1) : i >>> 1;
    return i;
  });
  let sum = 0xffffffff;
  for (const byte of bytes) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}
