// Attention maps as they come to a page: shares from 0 to 1, which pack() of packing.py wrote.
import { unpack } from "../base/numbers.js";

/**
 * Maps one after another, each a list of rows.
 * @param {string} text
 * @param {number} rows
 * @param {number} columns
 */
export function maps(text, rows, columns) {
  const shares = Array.from(unpack(text), (byte) => byte / 255),
    row = (/** @type {number} */ n) => shares.slice(n * columns, (n + 1) * columns);
  return Array.from({ length: shares.length / (rows * columns) }, (_, i) =>
    Array.from({ length: rows }, (_, t) => row(i * rows + t)),
  );
}
