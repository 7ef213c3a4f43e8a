// The page's side: a picture of grey bytes, row by row, as the address of an image: drawn once, then scaled by the
// browser.

/**
 * @param {number[] | Uint8Array} greys
 * @param {number} width
 * @param {number} height
 */
export function photo(greys, width, height) {
  const sheet = Object.assign(document.createElement("canvas"), { width, height }),
    pen = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d")),
    image = pen.createImageData(width, height);
  greys.forEach((grey, i) => image.data.set([grey, grey, grey, 255], 4 * i));
  pen.putImageData(image, 0, 0);
  return sheet.toDataURL();
}
