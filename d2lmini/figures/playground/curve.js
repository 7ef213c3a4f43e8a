// The playground's curve of the loss, with earlier runs behind it, and the gradients of each block as bars.
import { add, button, draw, panel, place } from "../base/index.js";
import { playgroundDifferences } from "./run.js";

const CURVE_DASHES = ["7 3", "2 3", "9 3 2 3", "1 2", "12 5"];

// Returns a function that shows a run and earlier ones: ({run, earlier}). `forget()` follows the button.
/** @typedef {import("./run.js").PlaygroundRun} PlaygroundRun */
/** @param {HTMLElement} parent @param {() => void} forget */
export function playgroundCurve(parent, forget) {
  const [width, height, left, bottom, top] = [420, 230, 40, 26, 12];
  const figure = add(parent, "figure"),
    space = panel(figure, { width, height, x: [0, width], y: [height, 0], label: "loss by step" });
  const { svg } = space,
    grid = draw(svg, "g"),
    lines = draw(svg, "g", { "data-part": "lines" });
  const caption = add(figure, "figcaption");
  caption.append("Loss in nats a token. Line: training; rings: held-out examples; squares: longer ones, if scored. ");
  const legend = add(figure, "ul", { style: "margin: 2px 0; padding: 0; list-style: none", "data-part": "legend" });
  const forgetting = button(figure, "Forget earlier runs", forget);

  return (/** @type {{ run: PlaygroundRun, earlier: PlaygroundRun[] }} */ { run, earlier }) => {
    const all = [...earlier, run],
      mean = (/** @type {PlaygroundRun["points"][0]} */ { sum, count }) => sum / count;
    const steps = Math.max(10, ...all.map((one) => one.exploded?.step ?? one.step)),
      starts = all.flatMap(({ points, held }) => [...points.slice(0, 1).map(mean), ...held.map(({ loss }) => loss)]),
      high = Math.max(1, Math.min(Math.max(0, ...starts) * 1.1, 12));
    const x = (/** @type {number} */ step) => left + ((width - left - 14) * step) / steps,
      y = (/** @type {number} */ loss) => Math.max(2, height - bottom - ((height - bottom - top) * loss) / high);
    grid.replaceChildren();
    for (const part of [0, 0.5, 1]) {
      const loss = high * part,
        step = Math.round(steps * part);
      draw(grid, "line", { x1: left, x2: width, y1: y(loss), y2: y(loss), stroke: "#8885" });
      draw(grid, "text", { x: left - 5, y: y(loss) + 4, "text-anchor": "end" }, loss.toFixed(high < 3 ? 2 : 1));
      const anchor = part === 1 ? "end" : part ? "middle" : "start";
      const where = { x: part === 1 ? width - 4 : x(step), y: height - 8, "text-anchor": anchor };
      draw(grid, "text", where, part ? step.toLocaleString("en") : "step 0");
    }
    lines.replaceChildren();
    all.forEach((one, i) => {
      const now = one === run,
        look = /** @type {Record<string, unknown>} */ (
          now ? { stroke: "var(--blue)", "stroke-width": 2 } : { stroke: "currentColor", opacity: 0.45 }
        );
      if (!now) look["stroke-dasharray"] = CURVE_DASHES[i % CURVE_DASHES.length];
      const path = one.points.map((point) => `${x(point.step).toFixed(1)},${y(mean(point)).toFixed(1)}`).join(" L");
      if (path) draw(lines, "path", { d: `M${path}`, fill: "none", ...look });
      const last = one.points.at(-1);
      if (!now && last)
        draw(lines, "text", { x: Math.min(x(last.step) + 3, width - 10), y: y(mean(last)) + 4 }, String(i + 1));
      for (const { step, loss, longer } of one.held) {
        for (const above of longer) {
          const square = {
            x: x(step) - 3,
            y: y(above) - 3,
            width: 6,
            height: 6,
            fill: "none",
            stroke: "var(--orange)",
          };
          draw(lines, "rect", { ...square, opacity: now ? 1 : 0.4 });
        }
        const ring = { cx: x(step), cy: y(loss), r: now ? 3.5 : 2, fill: "none", stroke: "var(--orange)" };
        draw(lines, "circle", { ...ring, opacity: now ? 1 : 0.4, "data-loss": loss.toFixed(6), "data-step": step });
      }
      if (now && one.exploded) {
        const mark = { x: Math.min(x(one.exploded.step), width - 8), y: top + 10, "text-anchor": "middle" };
        draw(lines, "text", mark, "✕");
      }
    });
    legend.replaceChildren();
    forgetting.style.display = earlier.length ? "" : "none";
    if (!earlier.length) return;
    const told = playgroundDifferences(all.map(({ settings }) => settings));
    all.forEach((one, i) => {
      const name = one === run ? "This run" : `Run ${i + 1}`,
        end = one.heldOut ? `; held out ${one.heldOut.loss.toFixed(3)} at step ${one.heldOut.step}` : "",
        later = one.changes.length ? `; ${one.changes.slice(-3).join(", ")}` : "";
      add(legend, "li", {}, `${name}: ${told[i] || "the same settings"}${end}${later}.`);
    });
  };
}

// Norms of the gradients by part, on a scale of powers of ten. Returns a function that shows them.
/** @param {HTMLElement} parent */
export function playgroundGradients(parent) {
  const [line, name, bar] = [22, 84, 180],
    least = -7,
    most = 3;
  const figure = add(parent, "figure");
  const { svg } = panel(figure, { width: 340, height: 6 * line + 6, x: [0, 1], y: [0, 1], label: "gradients by part" });
  const rows = Array.from({ length: 6 }, (_, i) => ({
    name: draw(svg, "text", { x: name - 6, y: line * i + 18, "text-anchor": "end" }),
    bar: draw(svg, "rect", { x: name, y: line * i + 7, height: line - 8, width: 0, fill: "var(--blue)" }),
    number: draw(svg, "text", { x: 334, y: line * i + 18, "text-anchor": "end" }),
  }));
  add(
    figure,
    "figcaption",
    {},
    "Norm of the gradients of the last step, by part. Each tenth of the room for a bar is a factor of ten.",
  );
  return (/** @type {PlaygroundRun} */ { gradients, settings }) => {
    place(svg, { viewBox: `0 0 340 ${(settings.blocks + 2) * line + 6}` });
    const blocks = Array.from({ length: settings.blocks }, (_, i) => `block ${i + 1}`),
      names = ["embedding", ...blocks, "scores"],
      norms = [gradients?.embedding, ...blocks.map((_, i) => gradients?.blocks[i]), gradients?.head];
    rows.forEach((row, i) => {
      const value = norms[i],
        share = value ? (Math.log10(value) - least) / (most - least) : 0;
      row.name.textContent = names[i] ?? "";
      row.number.textContent = value === undefined ? "" : value.toExponential(2);
      place(row.bar, { width: bar * Math.min(1, Math.max(0, share)) });
    });
  };
}
