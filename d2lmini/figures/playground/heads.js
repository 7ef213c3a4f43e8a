// Every head's weights on one example: small maps for all blocks and heads, and a large one with its numbers.
import { add, button, draw, onArrow, panel, place, rove } from "../base/index.js";

/** @typedef {import("./run.js").Look} Look */

// Returns a function that shows what was looked at, or null for nothing, and the letters of all tokens.
/** @param {HTMLElement} parent */
function playgroundHeads(parent) {
  const SIDE = 340,
    EDGE = 24;
  const box = add(parent, "div", { class: "d2lmini-panels" });
  const figure = add(box, "figure"),
    space = panel(figure, { width: SIDE, height: SIDE, x: [0, 1], y: [1, 0], label: "" });
  const { svg } = space;
  place(svg, { tabindex: 0, role: "img" });
  const picture = draw(svg, "image", {
    x: EDGE,
    y: EDGE,
    preserveAspectRatio: "none",
    style: "image-rendering: pixelated",
  });
  const labels = draw(svg, "g", { style: "pointer-events: none" }),
    mark = draw(svg, "rect", { fill: "none", stroke: "var(--orange)", "stroke-width": 2, "pointer-events": "none" });
  const note = add(figure, "figcaption", { style: "min-height: 2.8em", "data-part": "weights" });
  const maps = add(box, "div", { class: "d2lmini-maps", role: "group", "aria-label": "all blocks and heads" });
  let thumbs = /** @type {{ node: HTMLElement, canvas: HTMLCanvasElement, b: number, h: number }[]} */ ([]),
    shape = "",
    chosen = [0, 0], // block, head
    at = [0, 0], // row, column
    seen = /** @type {Look | null} */ (null),
    names = /** @type {string[]} */ ([]);

  const spell = (/** @type {number} */ token) => names[token].replace("\n", "↵").replace(" ", "␣");

  /** @param {number} blocks @param {number} heads */
  function reshape(blocks, heads) {
    maps.replaceChildren();
    thumbs = [];
    for (let b = 0; b < blocks; b++)
      for (let h = 0; h < heads; h++) {
        const short = `${b + 1}.${h + 1}`,
          name = `${short}, block ${b + 1}, head ${h + 1}`,
          node = button(maps, "", () => choose(b, h), { "aria-label": name });
        const canvas = add(node, "canvas", {
          style: "display: block; width: 68px; height: 68px; image-rendering: pixelated; border: 1px solid #8886",
          "aria-hidden": "true",
        });
        add(node, "span", { "aria-hidden": "true" }, short);
        thumbs.push({ node, canvas, b, h });
      }
    chosen = [Math.min(chosen[0], blocks - 1), Math.min(chosen[1], heads - 1)];
    rove(thumbs.map(({ node }) => node));
  }

  /** @param {number} b @param {number} h */
  function choose(b, h) {
    chosen = [b, h];
    paint();
  }

  function paint() {
    box.style.display = seen ? "" : "none";
    if (!seen || !box.isConnected) return;
    const { weights, tokens } = seen,
      T = tokens.length,
      heads = weights[0].data.length / (T * T),
      now = `${weights.length} ${heads}`;
    if (now !== shape) reshape(weights.length, heads);
    shape = now;
    paintThumbs(seen);
    paintLabels(tokens);
    at = at.map((i) => Math.min(i, T - 1));
    const cell = (SIDE - EDGE) / T,
      [b, h] = chosen,
      [t, s] = at;
    place(mark, { x: EDGE + s * cell, y: EDGE + t * cell, width: cell, height: cell });
    place(svg, { "aria-label": `weights of block ${b + 1}, head ${h + 1}: rows look at columns; arrow keys choose` });
    note.textContent =
      `Block ${b + 1}, head ${h + 1}: position ${t + 1}, “${spell(tokens[t])}”, looks at position ${s + 1}, ` +
      `“${spell(tokens[s])}”, with weight ${weights[b].data[(h * T + t) * T + s].toFixed(3)}.`;
  }

  /** @param {Look} look */
  function paintThumbs({ weights, tokens: { length: T } }) {
    const parts =
        getComputedStyle(box)
          .getPropertyValue("--blue")
          .match(/[\da-f]{2}/gi) ?? [],
      [red, green, blue] = parts.map((part) => Number.parseInt(part, 16));
    for (const { node, canvas, b, h } of thumbs) {
      const own = b === chosen[0] && h === chosen[1];
      place(node, { "aria-pressed": own });
      if (canvas.width !== T) Object.assign(canvas, { width: T, height: T });
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")),
        cells = context.createImageData(T, T);
      for (let i = 0; i < T * T; i++)
        cells.data.set([red, green, blue, 255 * weights[b].data[h * T * T + i] ** 0.7], 4 * i);
      context.putImageData(cells, 0, 0);
      if (own) place(picture, { href: canvas.toDataURL(), width: SIDE - EDGE, height: SIDE - EDGE });
    }
  }

  /** @param {number[]} tokens */
  function paintLabels(tokens) {
    const cell = (SIDE - EDGE) / tokens.length,
      every = Math.ceil(12 / cell);
    labels.replaceChildren();
    tokens.forEach((token, i) => {
      if (i % every) return;
      const middle = EDGE + (i + 0.5) * cell;
      draw(labels, "text", { x: EDGE - 5, y: middle + 4, "text-anchor": "end" }, spell(token));
      draw(labels, "text", { x: middle, y: EDGE - 7, "text-anchor": "middle" }, spell(token));
    });
  }

  /** @param {number} row @param {number} column */
  function point(row, column) {
    const T = seen?.tokens.length ?? 0;
    if (!T) return;
    at = [row, column].map((i) => Math.min(T - 1, Math.max(0, i)));
    paint();
  }
  const follow = (/** @type {PointerEvent} */ event) => {
    const { left, top, width } = svg.getBoundingClientRect(),
      T = seen?.tokens.length ?? 1,
      size = ((width / SIDE) * (SIDE - EDGE)) / T,
      first = (width / SIDE) * EDGE;
    point(Math.floor((event.clientY - top - first) / size), Math.floor((event.clientX - left - first) / size));
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow); // a finger that taps does not move
  onArrow(svg, (down, right) => point(at[0] + down, at[1] + right));

  return (/** @type {Look | null} */ look, /** @type {string[]} */ letters) => {
    seen = look;
    names = letters;
    paint();
  };
}

// The heads on an example that the reader can edit; `asked()` follows an edit. Returns {begin, tokens, paint}:
// `begin(fit, tokens)` shows another task, or nothing; `tokens()` are those of the reader, or null where they are none.
/** @param {HTMLElement} parent @param {() => void} asked */
export function playgroundExample(parent, asked) {
  let fit = /** @type {import("./fit.js").Fit | null} */ (null),
    first = /** @type {number[]} */ ([]);
  const typing = add(parent, "label", { class: "d2lmini-control", style: "display: flex" });
  add(typing, "span", {}, "example for the heads");
  const field = add(typing, "input", {
    type: "text",
    "aria-label": "example that the heads look at",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    dir: "auto",
    style: "flex: 1 1 auto; max-width: 28rem; font-family: ui-monospace, monospace",
  });
  let edited = false;
  field.addEventListener("input", () => {
    edited = true;
    asked();
  });
  const unread = add(parent, "p", { role: "status", style: "margin: 2px 0", "data-part": "unread" });
  const heads = playgroundHeads(parent);

  return {
    begin(/** @type {typeof fit} */ now, /** @type {number[]} */ tokens = []) {
      fit = now;
      first = tokens;
      edited = false;
      field.value = fit ? fit.write(tokens) : "";
      unread.textContent = "";
      parent.style.display = fit ? "" : "none";
    },
    tokens() {
      let said = "",
        tokens = fit && first;
      try {
        if (fit && edited) tokens = fit.read(field.value);
      } catch (/** @type {any} */ error) {
        tokens = null;
        said = `The heads show the example before: ${error.message}.`;
      }
      if (unread.textContent !== said) unread.textContent = said;
      return tokens;
    },
    paint(/** @type {Look | null} */ look) {
      heads(fit && look, fit?.task.tokens ?? []);
    },
  };
}
