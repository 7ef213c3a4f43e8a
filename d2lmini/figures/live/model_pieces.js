// A large model that comes in pieces, as models/weights/model_pieces.py makes them: each is decoded into the memory of the
// tensors and let go, so that nothing is held twice.
import { GPT } from "./gpt.js";
import { PrefixCache } from "./prefix_cache.js";
import { Int8Matrix, Q4Matrix } from "./quantized.js";
import { lasting, prepare, reserve, Tensor } from "./tensor.js";
import { crc32 } from "./weights.js";

const PIECES_FORMAT = "d2lmini pieces 1"; // as models/weights/model_pieces.py has it

/**
 * @typedef {{ name: string, kind: string, shape: number[], row: number, rows: number, at: number, bytes: number }} PartSaid
 * @typedef {{ format: string, model: string, name: string, config: import("./gpt.js").GPTConfig, memory: number,
 *   pieces: { bytes: number, crc32: number, parts: PartSaid[] }[] }} Manifest
 */

class Floats extends Tensor {
  /** @param {number} row @param {number} rows @param {ArrayBuffer} buffer @param {number} at */
  put(row, rows, buffer, at) {
    const size = this.length / this.shape[0];
    this.data.set(new Float32Array(buffer, at, rows * size), row * size);
  }
}

/** @type {Record<string, (shape: number[]) => Floats | Int8Matrix | Q4Matrix>} */
const MATRICES = {
  float32: (shape) => lasting(new Floats(...shape)),
  int8: (shape) => new Int8Matrix(shape),
  q4_1: (shape) => new Q4Matrix(shape),
};

export class Pieces {
  // Makes room for all that a manifest speaks of. Throws an Error where the browser or the manifest is another than
  // expected, a RangeError where there is no room.
  /** @param {Manifest} manifest */
  constructor(manifest) {
    if (manifest?.format !== PIECES_FORMAT) throw new Error(`the model is of another version: ${manifest?.format}`);
    if (manifest.model !== "GPT") throw new Error(`the pieces are of a ${manifest.model}, expected a GPT`);
    this.manifest = manifest;
    this.left = new Set(manifest.pieces.keys());
    /** @type {Map<string, Floats | Int8Matrix | Q4Matrix>} */
    this.matrices = new Map();
    /** @type {Map<string, any>} */
    this.texts = new Map(); // parts that are JSON
    try {
      reserve(manifest.memory);
      for (const { parts } of manifest.pieces)
        for (const { name, kind, shape } of parts)
          if (kind !== "json" && !this.matrices.has(name)) this.matrices.set(name, this.#room(name, kind, shape));
    } catch (error) {
      this.free();
      throw error;
    }
  }

  /** @param {Manifest} manifest */
  static async begin(manifest) {
    if ((await prepare()) !== "simd")
      throw new Error(
        "this browser has no WebAssembly SIMD, without which the model would be too slow: a newer one has",
      );
    return new Pieces(manifest);
  }

  /** @param {string} name @param {string} kind @param {number[]} shape */
  #room(name, kind, shape) {
    if (!Object.hasOwn(MATRICES, kind)) throw new Error(`${name} is kept as ${kind}, which this page does not know`);
    return MATRICES[kind](shape);
  }

  // Takes a piece, an ArrayBuffer; a second time it changes nothing. Throws an Error where it is damaged.
  /** @param {number} index @param {ArrayBuffer} buffer */
  put(index, buffer) {
    const said = this.manifest.pieces[index];
    if (!said) throw new RangeError(`there is no piece ${index}, only ${this.manifest.pieces.length}`);
    if (!this.left.has(index)) return;
    if (buffer.byteLength !== said.bytes || crc32(new Uint8Array(buffer)) !== said.crc32)
      throw new Error(`piece ${index} was cut or damaged on its way`);
    for (const { name, kind, row, rows, at, bytes } of said.parts)
      if (kind === "json")
        this.texts.set(name, JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, at, bytes))));
      else this.matrices.get(name)?.put(row, rows, buffer, at);
    this.left.delete(index);
  }

  // The model, as models.js gives one, and what it reads: {model, config, tokenizer, extra, reading, free}.
  finish() {
    if (this.left.size) throw new Error(`pieces ${[...this.left].join(", ")} are missing`);
    const { config } = this.manifest,
      weights = (/** @type {string} */ name) => /** @type {any} */ (this.matrices.get(name) ?? null), // as if tensors
      model = new GPT(weights, config),
      reading = new PrefixCache(model);
    const free = () => {
      reading.free();
      this.free();
    };
    const tokenizer = { ...this.texts.get("tokenizer"), max_len: config.max_len };
    return { model, config, tokenizer, extra: {}, reading, free };
  }

  free() {
    for (const matrix of this.matrices.values()) matrix.free();
    this.matrices.clear();
    this.left = new Set(this.manifest.pieces.keys());
  }
}
