// A repeated sequence, its copies under each other: where a head looks, and the loss at each position.
import { add, button, draw, keep, panel, place, rove, scroller, ticks, told, unpack } from "./base/index.js";
import { look, meanLosses, strongest } from "./numbers/induction_head.js";

/**
 * `losses` of the next token, `without` a head ("layer.head"), too; `scores` of the heads, (layers, heads).
 * @typedef {{ tokens: string[], period: number, scores: number[][], losses: number[], without: Record<string, number[]>,
 *   attention: import("./numbers/induction_head.js").Attention, layer: number, head: number, position: number }} State
 */

const GAP = 84,
  BOX = 26,
  [WIDTH, HEIGHT] = [340, 170]; // of the graph

// Buttons of all heads, shaded by their induction scores. Returns: a function that marks the chosen one.
function headChooser(el, /** @type {State} */ state, moved) {
  const said = "induction score of each head (layer.head): its mean weight on the token after the previous occurrence";
  add(el, "div", {}, said);
  const named = { role: "group", "aria-label": "heads", style: "margin: 4px 0 10px" },
    chooser = add(el, "div", { class: "d2lmini-maps", ...named });
  const heads = state.scores.flatMap((row, l) =>
    row.map((score, h) => {
      const choose = () => {
        Object.assign(state, { layer: l + 1, head: h + 1 });
        moved("layer", "head");
      };
      const seen = `${l + 1}.${h + 1}: ${score.toFixed(2)}`;
      const node = button(chooser, seen, choose, { "aria-label": `${seen}, layer ${l + 1}, head ${h + 1}` });
      node.style.background = `color-mix(in srgb, var(--blue) ${(40 * score).toFixed(0)}%, transparent)`;
      return node;
    }),
  );
  const chosen = () => (state.layer - 1) * state.attention.heads + state.head - 1;
  rove(heads, { entry: chosen() });
  return () => heads.forEach((node, i) => place(node, { "aria-pressed": i === chosen() }));
}

// The copies under each other, where a token is pointed at. Returns: a function that shows a row of weights.
function copies(el, /** @type {State} */ state, moved) {
  const { tokens, period: P } = state,
    letters = Math.max(...tokens.map((token) => [...token].length)),
    cell = Math.max(32, 8 * Math.min(6, letters) + 14);
  const short = (token) => ([...token].length > 6 ? [...token].slice(0, 5).join("") + "…" : token);
  const [width, height] = [P * cell + 12, Math.ceil(tokens.length / P) * GAP + 4],
    label = "the tokens, one copy of the sequence under the other",
    { svg } = panel(scroller(el), { width, height, x: [0, 1], y: [0, 1], label });
  svg.style.minWidth = `${width}px`;
  const x = (t) => 6 + (t % P) * cell + cell / 2,
    y = (t) => Math.floor(t / P) * GAP + 40; // the top of a box
  const arcs = draw(svg, "g", { fill: "none", stroke: "var(--blue)", "pointer-events": "none" });
  const boxes = tokens.map((token, t) => {
    const node = draw(svg, "g", { role: "button", style: "cursor: pointer", "aria-label": `${token} at ${t}` });
    const frame = draw(node, "rect", { x: x(t) - cell / 2 + 2, y: y(t), width: cell - 4, height: BOX, rx: 4 });
    draw(node, "text", { x: x(t), y: y(t) + 17, "text-anchor": "middle" }, short(token));
    const below = { x: x(t), y: y(t) + BOX + 14, "text-anchor": "middle", "pointer-events": "none" },
      number = draw(svg, "text", below);
    const point = () => {
      if (state.position === t) return;
      state.position = t;
      moved("position");
    };
    for (const kind of ["pointerenter", "focus"]) node.addEventListener(kind, point);
    node.addEventListener("click", () => node.focus());
    return { node, frame, number };
  });
  rove(
    boxes.map(({ node }) => node),
    { entry: state.position, to: (i, down, right) => i + down * P + right },
  );

  function arc(t, s, weight) {
    const [x0, y0, x1] = [x(t), y(t), x(s)],
      above = y(s) < y0,
      y1 = y(s) + (above ? BOX + 18 : 0),
      lift = above ? 22 : Math.min(36, 14 + 3 * Math.abs(t - s));
    const d = `M${x0} ${y0}C${x0} ${y0 - lift} ${x1} ${above ? y1 + lift : y1 - lift} ${x1} ${y1}`;
    draw(arcs, "path", { d, "stroke-width": 1 + 4 * weight, opacity: Math.max(weight, 0.15) });
  }
  return (/** @type {number[]} */ row) => {
    const t = state.position;
    arcs.replaceChildren();
    row.forEach((weight, s) => {
      if (weight >= 0.02 && s !== t) arc(t, s, weight);
    });
    boxes.forEach(({ node, frame, number }, s) => {
      const self = s === t,
        twin = s === t - P,
        target = t >= P && s === t - P + 1;
      place(node, { "aria-pressed": self });
      place(frame, {
        fill: "var(--blue)",
        "fill-opacity": 0.7 * row[s],
        stroke: self ? "var(--orange)" : target ? "var(--blue)" : "currentColor",
        "stroke-width": self || target ? 3 : twin ? 2 : 1,
        "stroke-dasharray": twin ? "4 3" : "none",
        "stroke-opacity": self || twin || target ? 1 : 0.35,
      });
      number.textContent = row[s] >= 0.05 ? row[s].toFixed(2) : "";
    });
  };
}

// The loss at each position, and that without a head. Returns: a function that shows them at a position.
function lossGraph(el, /** @type {State} */ { tokens, period: P, losses, without }) {
  const figure = add(add(el, "div", { class: "d2lmini-panels" }), "figure"),
    T = tokens.length,
    top = Math.max(...losses, ...Object.values(without).flat(), 1e-9);
  const range = { x: [-0.5 - 0.08 * T, T - 0.5], y: [-0.34 * top, 1.28 * top] },
    space = panel(figure, { width: WIDTH, height: HEIGHT, ...range, label: "the loss at each position" }),
    { svg } = space;
  const points = (values) => values.map((v, t) => `${space.x(t)},${space.y(v)}`).join(" ");
  const dash = { stroke: "currentColor", "stroke-dasharray": "3 4", opacity: 0.6 };
  for (let t = P; t < T; t += P) {
    const at = space.x(t - 0.5);
    draw(svg, "line", { x1: at, x2: at, y1: 0, y2: HEIGHT, ...dash });
  }
  for (const v of ticks(0, top)) {
    draw(svg, "line", { x1: space.x(-0.5), x2: WIDTH, y1: space.y(v), y2: space.y(v), stroke: "#8886" });
    draw(svg, "text", { x: space.x(-0.5) - 4, y: space.y(v) + 4, "text-anchor": "end" }, String(v));
  }
  for (let t = 0; t < T; t += P) draw(svg, "text", { x: space.x(t), y: space.y(0) + 16 }, String(t));
  draw(svg, "text", { x: WIDTH - 4, y: HEIGHT - 4, "text-anchor": "end" }, "position");
  const line = { fill: "none", "stroke-width": 2 };
  const off = draw(svg, "polyline", { ...line, stroke: "var(--orange)", "stroke-dasharray": "6 3" });
  draw(svg, "polyline", { ...line, stroke: "var(--blue)", points: points(losses) });
  const dots = ["var(--orange)", "var(--blue)"].map((fill) => draw(svg, "circle", { r: 4.5, fill }));
  const words = draw(svg, "text", { x: space.x(-0.5), y: 14, class: "d2lmini-loss" });
  const caption = add(figure, "figcaption");
  const means = (values) => {
    const [first, again] = meanLosses(values, P).map((mean) => mean.toFixed(2));
    return `${first} at first, ${again} in the repetition`;
  };

  return (/** @type {State} */ { layer, head, position: t }) => {
    const ablated = without[`${layer}.${head}`];
    off.style.display = ablated ? "" : "none";
    if (ablated) place(off, { points: points(ablated) });
    [ablated, losses].forEach((values, i) => {
      dots[i].style.display = values ? "" : "none";
      if (values) place(dots[i], { cx: space.x(t), cy: space.y(values[t]) });
    });
    words.textContent =
      `loss at ${t}: ${losses[t].toFixed(2)} nats` + (ablated ? `, head off: ${ablated[t].toFixed(2)}` : "");
    caption.textContent =
      `loss of the next token at each position, in nats; dashed line: the sequence starts again. ` +
      `Mean: ${means(losses)}` +
      (ablated ? `; with head ${layer}.${head} off (orange, dashed): ${means(ablated)}.` : ".");
  };
}

function say(/** @type {State} */ { tokens, period, layer, head, position: t }, /** @type {number[]} */ row) {
  const before = t - period,
    after = before + 1;
  const seen = strongest(row).map(([s, weight]) => `“${tokens[s]}” at ${s} (${weight.toFixed(2)})`);
  return (
    `Head ${layer}.${head}, from “${tokens[t]}” at ${t}, looks at ${seen.join(", ") || "nothing much"}. ` +
    (before < 0
      ? "This token was not there before."
      : `The last “${tokens[t]}” was at ${before}, and “${tokens[after]}” came after it: weight ` +
        `${row[after].toFixed(2)}. ` +
        (t + 1 < tokens.length ? `Next comes “${tokens[t + 1]}” again.` : ""))
  );
}

function render({ model, el }) {
  const keys = ["tokens", "period", "scores", "losses", "without", "layer", "head", "position"],
    [tokens, period, scores, losses, without, layer, head, position] = keys.map((key) => model.get(key));
  const attention = { weights: unpack(model.get("weights")), heads: model.get("size")[1], T: tokens.length };
  /** @type {State} */
  const state = { tokens, period, scores, losses, without, attention, layer, head, position };
  const moved = (...changed) => {
    for (const key of changed) keep(model, key, state[key]);
    paint();
  };

  const paintHeads = headChooser(el, state, moved);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.4em" });
  const paintCopies = copies(el, state, moved);
  const legend =
    told("Orange frame: the token pointed at") +
    "; dashed: its previous occurrence; thick blue: the token after that. " +
    "Arcs, shades and numbers: where the head looks.";
  add(el, "div", { style: "margin: 4px 0 10px" }, legend);
  const paintLosses = lossGraph(el, state);

  function paint() {
    const row = look(attention, state);
    paintHeads();
    paintCopies(row);
    paintLosses(state);
    note.textContent = say(state, row);
  }
  paint();
}

export default { render };
