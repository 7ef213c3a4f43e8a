// A picture in patches: cut it finer or coarser, and see what the pieces cost.
import { add, draw, keep, panel, slider } from "./base/index.js";

function render({ model, el }) {
  const pixels = model.get("picture"),
    sizes = model.get("patch_sizes"),
    high = pixels.length,
    wide = pixels[0].length;
  const [h, m, blocks] = ["num_hiddens", "mlp_num_hiddens", "num_blks"].map((key) => model.get(key));
  const parts = {
    embedding: "patch embedding",
    projections: "queries, keys, values, output",
    network: "networks",
    attention: "scores and mixtures",
  };
  const total = (c) => Object.keys(parts).reduce((sum, part) => sum + c[part], 0);
  const many = (n) => n.toLocaleString("en-US");
  let now = model.get("patch_size");

  // the same formulas as PatchSize.costs
  function costs(size) {
    const patches = (high * wide) / size ** 2,
      T = patches + 1;
    return {
      tokens: T,
      embedding_parameters: size ** 2 * h + h,
      position_parameters: T * h,
      embedding: 2 * patches * size ** 2 * h,
      projections: blocks * 8 * T * h ** 2,
      network: blocks * 4 * T * h * m,
      attention: blocks * 4 * T ** 2 * h,
    };
  }

  const controls = add(el, "div", { class: "d2lmini-controls" });
  const input = slider(
    controls,
    { label: "patch size", min: 0, max: sizes.length - 1, step: 1, value: sizes.indexOf(now) },
    (index) => {
      now = sizes[index];
      keep(model, "patch_size", now);
      paint();
    },
  );
  const panels = add(el, "div", { class: "d2lmini-panels" });

  const box = add(panels, "figure"),
    scale = 300 / Math.max(high, wide),
    [width, height] = [scale * wide, scale * high];
  const sheet = Object.assign(document.createElement("canvas"), { width: wide, height: high }),
    pen = sheet.getContext("2d");
  const image = pen.createImageData(wide, high);
  pixels.flat().forEach((grey, i) => image.data.set([grey, grey, grey, 255], 4 * i));
  pen.putImageData(image, 0, 0);
  const space = panel(box, { width, height, x: [0, width], y: [height, 0], label: "the picture, cut into patches" });
  draw(space.svg, "image", {
    width,
    height,
    href: sheet.toDataURL(),
    preserveAspectRatio: "none",
    style: "image-rendering: pixelated",
  });
  const cuts = draw(space.svg, "path", { fill: "none", stroke: "#ff7a00" });
  const caption = add(box, "figcaption");

  const numbers = add(panels, "div", { style: "flex-basis: 18rem" });
  const sheetOf = add(numbers, "table", { "aria-label": "counts" }),
    body = add(sheetOf, "tbody");
  const line = (text) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, text);
    return add(row, "td");
  };
  const counts = {
    tokens: line("tokens, with the class token"),
    embedding_parameters: line("parameters of the patch embedding"),
    position_parameters: line("parameters of the positions"),
    operations: line("operations for one image"),
  };
  add(numbers, "div", { style: "margin-top: 8px" }, "shares of the operations, and their numbers");
  const bars = panel(numbers, { width: 360, height: 4 * 46, x: [0, 1], y: [1, 0], label: "shares of the operations" });
  const rows = Object.entries(parts).map(([part, name], i) => {
    draw(bars.svg, "text", { x: 6, y: 46 * i + 16 }, name);
    const bar = draw(bars.svg, "rect", {
      x: 6,
      y: 46 * i + 22,
      height: 16,
      rx: 2,
      fill: part === "attention" ? "var(--orange)" : "var(--blue)",
    });
    return { part, bar, share: draw(bars.svg, "text", { y: 46 * i + 35 }) };
  });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const c = costs(now),
      all = total(c);
    input.nextElementSibling.textContent = `${now} × ${now}`;
    input.setAttribute("aria-valuetext", `${now} by ${now} pixels`);
    const steps = (n) => Array.from({ length: n - 1 }, (_, i) => (i + 1) * now * scale);
    cuts.setAttribute(
      "d",
      steps(wide / now)
        .map((x) => `M${x} 0V${height}`)
        .concat(steps(high / now).map((y) => `M0 ${y}H${width}`))
        .join(""),
    );
    cuts.setAttribute("stroke-width", Math.min(3, 0.6 + (now * scale) / 40));
    caption.textContent = `${high / now} × ${wide / now} patches of ${now * now} pixels`;
    for (const [name, cell] of Object.entries(counts)) cell.textContent = many(name === "operations" ? all : c[name]);
    for (const { part, bar, share } of rows) {
      const w = (240 * c[part]) / all;
      bar.setAttribute("width", w);
      share.setAttribute("x", w + 12);
      share.textContent = `${((100 * c[part]) / all).toFixed(1)} % (${many(c[part])})`;
    }
    const finer = sizes[sizes.indexOf(now) - 1];
    const ratio = finer && [costs(finer).tokens / c.tokens, total(costs(finer)) / all].map((x) => x.toFixed(1));
    note.textContent = finer
      ? `Patches of ${finer} instead of ${now}: ${ratio[0]} times the tokens, ${ratio[1]} times the operations.`
      : `The finest cut of this figure: ${many(c.tokens)} tokens, each looking at ${many(c.tokens)}.`;
  }
  paint();
}

export default { render };
