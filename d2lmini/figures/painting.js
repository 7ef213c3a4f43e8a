// Pictures of a few pixels in the page: shown, pointed at, painted by pointer, finger and keyboard.
import { ARROWS, add, button, choice, draw, panel, place, slider } from "./base/index.js";
import { line, square } from "./numbers/painting.js";

/**
 * A picture that is painted: `values` of all pixels; `brush`, which `paintingTools` changes; `set(values)` shows others;
 * `show(i, fill)` colours a pixel as it likes; `cursor`: the pixel that the keyboard is at.
 * @typedef {{ svg: SVGSVGElement, values: number[], brush: { value: number, size: number }, cursor: number,
 *   set: (values: ArrayLike<number>) => void, show: (i: number, fill: string) => void }} Grid
 */

export const DRAWN = "drawn"; // the choice of a picture that is the reader's own

// Who paints chooses the own drawing. `now.picture` is what was chosen, `set` changes it.
export function turnToDrawing(picking, now, set) {
  if (now.picture === DRAWN) return;
  set("picture", DRAWN);
  picking.value = DRAWN;
}

/**
 * Squares of a picture in an SVG, `unit` wide. Returns a function that colours one.
 * @param {SVGElement} parent
 * @param {number[]} size
 * @param {number} unit
 */
export function pixelRects(parent, [height, width], unit) {
  const rects = Array.from({ length: height * width }, (_, i) =>
    draw(parent, "rect", {
      x: unit * (i % width),
      y: unit * Math.floor(i / width),
      width: unit,
      height: unit,
      "shape-rendering": "crispEdges",
    }),
  );
  const fills = /** @type {string[]} */ ([]);
  return (/** @type {number} */ i, /** @type {string} */ fill) => {
    if (fills[i] === fill) return;
    fills[i] = fill;
    rects[i].setAttribute("fill", fill);
  };
}

// What fills a place in an SVG where nothing is: stripes.
export function stripes(/** @type {SVGElement} */ svg, opacity = 0.3) {
  const id = `d2lmini-hatch-${Math.random().toString(36).slice(2)}`;
  const pattern = draw(draw(svg, "defs"), "pattern", {
    id,
    width: 8,
    height: 8,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  draw(pattern, "rect", { width: 2, height: 8, fill: "currentColor", opacity });
  return `url(#${id})`;
}

export const greyOf = (/** @type {number} */ share) => {
  const byte = Math.round(255 * share);
  return `rgb(${byte},${byte},${byte})`;
};

/**
 * A picture that a reader paints. `size`: height and width; `rows`: how many from the top may be painted;
 * `shade(value)`: of a value the share of white. `painted(done)` is called when pixels have changed, `done` at the end
 * of a stroke; `pointed(index, stays)` when the reader points at a pixel, null when no longer; `stays`: clicked, or by
 * keyboard.
 * @param {Element} parent
 * @param {{ label: string, size: number[], rows?: number, unit: number, shade: (value: number) => number }} settings
 * @param {{ painted: (done: boolean) => void, pointed?: (index: number | null, stays: boolean) => void }} told
 */
export function paintingGrid(parent, { label, size, rows = size[0], unit, shade }, { painted, pointed = () => {} }) {
  const [height, width] = size;
  const { svg } = panel(parent, { width: unit * width, height: unit * height, x: [0, width], y: [0, height], label });
  place(svg, { role: "application", tabindex: 0, "aria-roledescription": "picture to paint" });
  svg.style.touchAction = "none";
  svg.style.cursor = "crosshair";
  const show = pixelRects(svg, size, unit),
    frame = draw(svg, "rect", {
      width: unit,
      height: unit,
      fill: "none",
      stroke: "var(--orange)",
      "stroke-width": Math.max(2, unit / 5),
      "pointer-events": "none",
      visibility: "hidden",
    });
  const said = add(parent, "span", {
    "aria-live": "polite",
    style: "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)",
  });
  /** @type {Grid} */
  const grid = {
    svg,
    values: Array(height * width).fill(0),
    brush: { value: 0, size: 2 },
    cursor: Math.floor(rows / 2) * width + Math.floor(width / 2),
    set(values) {
      grid.values = Array.from(values);
      for (let i = 0; i < rows * width; i++) fills(i);
    },
    show,
  };
  const fills = (/** @type {number} */ i) => show(i, greyOf(shade(grid.values[i])));
  let last = /** @type {number | null} */ (null); // the pixel under a pressed pointer

  const at = (/** @type {PointerEvent} */ event) => {
    const box = svg.getBoundingClientRect();
    const within = (/** @type {number} */ share, /** @type {number} */ n) =>
      Math.min(n - 1, Math.max(0, Math.floor(share * n)));
    const row = within((event.clientY - box.top) / box.height, height);
    return row * width + within((event.clientX - box.left) / box.width, width);
  };

  const dab = (/** @type {number} */ middle) => {
    for (const i of square(middle, grid.brush.size, [rows, width])) {
      grid.values[i] = grid.brush.value;
      fills(i);
    }
  };

  svg.addEventListener("pointerdown", (event) => {
    if (event.button > 0 || last !== null) return;
    event.preventDefault();
    svg.focus({ preventScroll: true, focusVisible: false });
    grid.cursor = at(event);
    pointed(grid.cursor, true);
    if (grid.cursor >= rows * width) return;
    svg.setPointerCapture(event.pointerId);
    last = grid.cursor;
    dab(last);
    painted(false);
  });
  svg.addEventListener("pointermove", (event) => {
    const now = at(event);
    if (last === null) {
      if (event.pointerType === "mouse") pointed(now, false);
      return;
    }
    if (!svg.hasPointerCapture(event.pointerId) || now === last) return;
    line(last, now, width).forEach(dab);
    last = now;
    painted(false);
  });
  for (const kind of /** @type {const} */ (["pointerup", "pointercancel"]))
    svg.addEventListener(kind, (event) => {
      if (last === null || !svg.hasPointerCapture(event.pointerId)) return;
      last = null;
      painted(true);
    });
  svg.addEventListener("pointerleave", () => {
    if (last === null) pointed(null, false);
  });

  const look = () => {
    place(frame, {
      x: unit * (grid.cursor % width),
      y: unit * Math.floor(grid.cursor / width),
      visibility: svg.matches(":focus-visible") ? "visible" : "hidden",
    });
  };
  svg.addEventListener("focus", look);
  svg.addEventListener("blur", look);
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = ARROWS[event.key],
      before = grid.cursor;
    if (!move && event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (move) {
      const [row, column] = [Math.floor(before / width) + move[0], (before % width) + move[1]];
      if (row < 0 || row >= height || column < 0 || column >= width) return;
      grid.cursor = row * width + column;
    }
    look();
    if (grid.cursor < rows * width && (!move || event.shiftKey)) {
      dab(grid.cursor);
      painted(true);
    }
    pointed(grid.cursor, true);
    const value = grid.cursor < rows * width ? `: ${Math.round(100 * shade(grid.values[grid.cursor]))} % of white` : "";
    said.textContent = `row ${Math.floor(grid.cursor / width) + 1}, column ${(grid.cursor % width) + 1}${value}`;
  });
  return grid;
}

// A row of controls, close enough that it is one on a phone; and a control that leaves room there for others.
export const controlRow = (/** @type {Element} */ parent) =>
  add(parent, "div", { class: "d2lmini-controls", style: "gap: 6px 12px" });
export const narrowed = (/** @type {HTMLElement} */ node, width = "4.8rem") => {
  node.style.minWidth = "0";
  node.style[node.localName === "select" ? "maxWidth" : "width"] = width;
  return node;
};

/**
 * Brush, eraser and Clear of a painting grid. `palette`: values from the darkest on.
 * @param {Element} parent
 * @param {Grid} grid
 * @param {{ palette: number[], shade: (value: number) => number, painted: (done: boolean) => void }} settings
 */
export function paintingTools(parent, grid, { palette, shade, painted }) {
  let grey = palette.length - 1;
  const mark = () => {
    const erases = eraser.getAttribute("aria-pressed") === "true";
    grid.brush.value = palette[erases ? 0 : grey];
  };
  button(parent, "clear", () => {
    grid.set(grid.values.map(() => palette[0]));
    painted(true);
  });
  const eraser = button(
    parent,
    "eraser",
    () => {
      place(eraser, { "aria-pressed": eraser.getAttribute("aria-pressed") !== "true" });
      mark();
    },
    { "aria-pressed": false },
  );
  const say = (/** @type {number} */ k) => `${Math.round(100 * shade(palette[k]))} %`;
  const tone = { label: "grey", min: 0, max: grey, step: 1, value: grey, say };
  narrowed(
    slider(parent, tone, (k) => {
      grey = k;
      place(eraser, { "aria-pressed": false });
      mark();
    }),
  );
  const sizes = { label: "brush", options: { 1: "1 pixel", 2: "2 × 2", 4: "4 × 4" }, value: grid.brush.size };
  choice(parent, sizes, (size) => {
    grid.brush.size = Number(size);
  });
  mark();
}
