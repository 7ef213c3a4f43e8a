// A picture in patches: cut it finer or coarser, and see what the pieces cost.
import { add, draw, keep, panel, place, slider } from "./base/index.js";
import { costs, PARTS } from "./numbers/patch_size.js";
import { photo } from "./page/photo.js";

const NAMES = {
  embedding: "patch embedding",
  projections: "queries, keys, values, output",
  network: "networks",
  attention: "scores and mixtures",
};
const COUNTS = {
  tokens: "tokens, with the class token",
  embedding_parameters: "parameters of the patch embedding",
  position_parameters: "parameters of the positions",
  operations: "operations for one image",
};
const LONG = 300, // of the longer side of the picture
  ROW = 46; // of a bar

const many = (/** @type {number} */ n) => n.toLocaleString("en-US");

// The picture, and the cuts through it. Paints those of a size.
function cutPicture(parent, pixels) {
  const [high, wide] = [pixels.length, pixels[0].length],
    scale = LONG / Math.max(high, wide),
    [width, height] = [scale * wide, scale * high];
  const box = add(parent, "figure"),
    size = { width, height, x: [0, width], y: [height, 0] },
    { svg } = panel(box, { ...size, label: "the picture, cut into patches" });
  const look = { preserveAspectRatio: "none", style: "image-rendering: pixelated" };
  draw(svg, "image", { width, height, href: photo(pixels.flat(), wide, high), ...look });
  const cuts = draw(svg, "path", { fill: "none", stroke: "#ff7a00" });
  const caption = add(box, "figcaption");

  return (size) => {
    const steps = (/** @type {number} */ n) => Array.from({ length: n - 1 }, (_, i) => (i + 1) * size * scale);
    const lines = [
      ...steps(wide / size).map((x) => `M${x} 0V${height}`),
      ...steps(high / size).map((y) => `M0 ${y}H${width}`),
    ];
    place(cuts, { d: lines.join(""), "stroke-width": Math.min(3, 0.6 + (size * scale) / 40) });
    caption.textContent = `${high / size} × ${wide / size} patches of ${size * size} pixels`;
  };
}

// Counts, and each part's share of the operations. Paints costs.
function costTable(parent) {
  const box = add(parent, "div", { style: "flex-basis: 18rem" }),
    body = add(add(box, "table", { "aria-label": "counts" }), "tbody");
  const cells = Object.entries(COUNTS).map(([key, text]) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, text);
    return { key, cell: add(row, "td") };
  });
  add(box, "div", { style: "margin-top: 8px" }, "shares of the operations, and their numbers");
  const size = { width: 360, height: PARTS.length * ROW, x: [0, 1], y: [1, 0] },
    { svg } = panel(box, { ...size, label: "shares of the operations" });
  const bars = PARTS.map((part, i) => {
    const fill = part === "attention" ? "var(--orange)" : "var(--blue)";
    draw(svg, "text", { x: 6, y: ROW * i + 16 }, NAMES[part]);
    const bar = draw(svg, "rect", { x: 6, y: ROW * i + 22, height: 16, rx: 2, fill });
    return { part, bar, share: draw(svg, "text", { y: ROW * i + 35 }) };
  });

  return (counts) => {
    for (const { key, cell } of cells) cell.textContent = many(counts[key]);
    for (const { part, bar, share } of bars) {
      const width = (240 * counts[part]) / counts.operations;
      place(bar, { width });
      place(share, { x: width + 12 });
      share.textContent = `${((100 * counts[part]) / counts.operations).toFixed(1)} % (${many(counts[part])})`;
    }
  };
}

function render({ model, el }) {
  const pixels = model.get("picture"),
    sizes = model.get("patch_sizes");
  const sized = {
    high: pixels.length,
    wide: pixels[0].length,
    num_hiddens: model.get("num_hiddens"),
    mlp_num_hiddens: model.get("mlp_num_hiddens"),
    num_blks: model.get("num_blks"),
  };
  let now = model.get("patch_size");
  const controls = add(el, "div", { class: "d2lmini-controls" }),
    range = { min: 0, max: sizes.length - 1, step: 1 };
  const input = slider(controls, { label: "patch size", ...range, value: sizes.indexOf(now) }, (index) => {
    now = sizes[index];
    keep(model, "patch_size", now);
    paint();
  });
  const panels = add(el, "div", { class: "d2lmini-panels" }),
    paintPicture = cutPicture(panels, pixels),
    paintCosts = costTable(panels);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const counts = costs(sized, now),
      { tokens, operations } = counts;
    /** @type {Element} */ (input.nextElementSibling).textContent = `${now} × ${now}`;
    place(input, { "aria-valuetext": `${now} by ${now} pixels` });
    paintPicture(now);
    paintCosts(counts);
    const finer = sizes[sizes.indexOf(now) - 1],
      more = finer && costs(sized, finer);
    note.textContent = finer
      ? `Patches of ${finer} instead of ${now}: ${(more.tokens / tokens).toFixed(1)} times the tokens, ` +
        `${(more.operations / operations).toFixed(1)} times the operations.`
      : `The finest cut of this figure: ${many(tokens)} tokens, each looking at ${many(tokens)}.`;
  }
  paint();
}

export default { render };
