// Which pixels a brush paints: numbers row by row, as a picture is read.

/**
 * The pixels of a square of `size` around one, as far as they are in the rows that may be painted.
 * @param {number} i
 * @param {number} size
 * @param {number[]} shape
 */
export function square(i, size, [rows, width]) {
  const back = Math.floor((size - 1) / 2),
    span = (/** @type {number} */ at, /** @type {number} */ end) =>
      Array.from({ length: size }, (_, n) => at - back + n).filter((one) => one >= 0 && one < end);
  return span(Math.floor(i / width), rows).flatMap((y) => span(i % width, width).map((x) => y * width + x));
}

/**
 * The pixels from one to another: a fast pointer leaves some out.
 * @param {number} from
 * @param {number} to
 * @param {number} width
 */
export function line(from, to, width) {
  const [y0, x0, y1, x1] = [from, to].flatMap((i) => [Math.floor(i / width), i % width]),
    steps = Math.max(Math.abs(y1 - y0), Math.abs(x1 - x0), 1);
  return Array.from(
    { length: steps + 1 },
    (_, n) => Math.round(y0 + ((y1 - y0) * n) / steps) * width + Math.round(x0 + ((x1 - x0) * n) / steps),
  );
}
