// A product of a quantised matrix, for cases/quantized.py.
import { floatProducts, Int8Matrix, Q4Matrix } from "../../d2lmini/figures/live/quantized.js";
import { memoryUsed, part, prepare, Tensor, tidy } from "../../d2lmini/figures/live/tensor.js";

export const ways = { simd: prepare };

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;

// X (n, k) by a matrix that comes in two parts, into the middle of a wider one, by integers and floats; its last row.
export function multiplied({ kind, shape: [m, k], first, parts, X, n }) {
  const before = memoryUsed(),
    W = kind === "int8" ? new Int8Matrix([m, k]) : new Q4Matrix([m, k]);
  W.put(0, first, bytes(parts[0]), 0);
  if (first < m) W.put(first, m - first, bytes(parts[1]), 0);
  const product = (floats) =>
    tidy(() => {
      floatProducts(floats);
      const wide = Tensor.from(Array((n + 1) * (m + 3)).fill(7), n + 1, m + 3);
      W.times(Tensor.from(X, n, k), part(wide, 0, 2));
      floatProducts(false);
      const inside = (i) => i < n * (m + 3) && i % (m + 3) >= 2 && i % (m + 3) < m + 2;
      if (wide.data.some((value, i) => !inside(i) && value !== 7)) throw new Error("what lies around it was changed");
      return Array.from(wide.data).filter((_, i) => inside(i));
    });
  const found = { integers: product(false), floats: product(true), row: W.row(m - 1) };
  W.free();
  if (memoryUsed() !== before) throw new Error(`${memoryUsed() - before} bytes are left behind`);
  return found;
}
