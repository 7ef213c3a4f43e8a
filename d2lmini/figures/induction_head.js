// A repeated sequence, its copies under each other: where a head looks, and the loss at each position.
import { add, button, draw, keep, panel, place, rove, scroller, ticks, told, unpack } from "./base/index.js";

const GAP = 84,
  BOX = 26,
  GRAPH = [340, 170];

function render({ model, el }) {
  const [tokens, P, [, H], scores, losses, without] = ["tokens", "period", "size", "scores", "losses", "without"].map(
    (key) => model.get(key),
  );
  const T = tokens.length,
    bytes = unpack(model.get("weights"));
  const now = Object.fromEntries(["layer", "head", "position"].map((key) => [key, model.get(key)]));
  const weight = (t, s) => bytes[(((now.layer - 1) * H + now.head - 1) * T + t) * T + s] / 255;
  const longest = Math.min(6, Math.max(...tokens.map((token) => [...token].length))),
    cell = Math.max(32, 8 * longest + 14);
  const short = (token) => ([...token].length > 6 ? [...token].slice(0, 5).join("") + "…" : token);

  add(
    el,
    "div",
    {},
    "induction score of each head (layer.head): its mean weight on the token after the previous occurrence",
  );
  const chooser = add(el, "div", {
    class: "d2lmini-maps",
    role: "group",
    "aria-label": "heads",
    style: "margin: 4px 0 10px",
  });
  const heads = scores.flatMap((row, l) =>
    row.map((score, h) => {
      const choose = () => {
        Object.assign(now, { layer: l + 1, head: h + 1 });
        keep(model, "layer", l + 1);
        keep(model, "head", h + 1);
        paint();
      };
      const seen = `${l + 1}.${h + 1}: ${score.toFixed(2)}`;
      const node = button(chooser, seen, choose, { "aria-label": `${seen}, layer ${l + 1}, head ${h + 1}` });
      node.style.background = `color-mix(in srgb, var(--blue) ${(40 * score).toFixed(0)}%, transparent)`;
      return node;
    }),
  );
  rove(heads, { entry: (now.layer - 1) * H + now.head - 1 });

  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.4em" });
  const copies = Math.ceil(T / P),
    width = P * cell + 12,
    height = copies * GAP + 4;
  const { svg } = panel(scroller(el), {
    width,
    height,
    x: [0, 1],
    y: [0, 1],
    label: "the tokens, one copy of the sequence under the other",
  });
  svg.style.minWidth = `${width}px`;
  const x = (t) => 6 + (t % P) * cell + cell / 2,
    y = (t) => Math.floor(t / P) * GAP + 40; // the top of a box
  const arcs = draw(svg, "g", { fill: "none", stroke: "var(--blue)", "pointer-events": "none" });
  const boxes = tokens.map((token, t) => {
    const node = draw(svg, "g", { role: "button", style: "cursor: pointer", "aria-label": `${token} at ${t}` });
    const frame = draw(node, "rect", { x: x(t) - cell / 2 + 2, y: y(t), width: cell - 4, height: BOX, rx: 4 });
    draw(node, "text", { x: x(t), y: y(t) + 17, "text-anchor": "middle" }, short(token));
    const number = draw(svg, "text", {
      x: x(t),
      y: y(t) + BOX + 14,
      "text-anchor": "middle",
      "pointer-events": "none",
    });
    const point = () => {
      if (now.position !== t) {
        now.position = t;
        keep(model, "position", t);
        paint();
      }
    };
    for (const kind of ["pointerenter", "focus"]) node.addEventListener(kind, point);
    node.addEventListener("click", () => node.focus());
    return { node, frame, number };
  });
  rove(
    boxes.map(({ node }) => node),
    { entry: now.position, to: (i, down, right) => i + down * P + right },
  );
  add(
    el,
    "div",
    { style: "margin: 4px 0 10px" },
    told("Orange frame: the token pointed at") +
      "; dashed: its previous occurrence; thick blue: the token after that. " +
      "Arcs, shades and numbers: where the head looks.",
  );

  const figure = add(add(el, "div", { class: "d2lmini-panels" }), "figure");
  const top = Math.max(...losses, ...Object.values(without).flat(), 1e-9),
    [wide, high] = GRAPH;
  const graph = panel(figure, {
      width: wide,
      height: high,
      x: [-0.5 - 0.08 * T, T - 0.5],
      y: [-0.34 * top, 1.28 * top],
      label: "the loss at each position",
    }),
    plot = graph.svg;
  for (let t = P; t < T; t += P)
    draw(plot, "line", {
      x1: graph.x(t - 0.5),
      x2: graph.x(t - 0.5),
      y1: 0,
      y2: high,
      stroke: "currentColor",
      "stroke-dasharray": "3 4",
      opacity: 0.6,
    });
  const line = (values) => values.map((v, t) => `${graph.x(t)},${graph.y(v)}`).join(" ");
  for (const v of ticks(0, top)) {
    draw(plot, "line", { x1: graph.x(-0.5), x2: wide, y1: graph.y(v), y2: graph.y(v), stroke: "#8886" });
    draw(plot, "text", { x: graph.x(-0.5) - 4, y: graph.y(v) + 4, "text-anchor": "end" }, String(v));
  }
  for (let t = 0; t < T; t += P) draw(plot, "text", { x: graph.x(t), y: graph.y(0) + 16 }, String(t));
  draw(plot, "text", { x: wide - 4, y: high - 4, "text-anchor": "end" }, "position");
  const off = draw(plot, "polyline", {
    fill: "none",
    stroke: "var(--orange)",
    "stroke-width": 2,
    "stroke-dasharray": "6 3",
  });
  draw(plot, "polyline", { fill: "none", stroke: "var(--blue)", "stroke-width": 2, points: line(losses) });
  const dots = ["var(--orange)", "var(--blue)"].map((fill) => draw(plot, "circle", { r: 4.5, fill }));
  const words = draw(plot, "text", { x: graph.x(-0.5), y: 14, class: "d2lmini-loss" });
  const caption = add(figure, "figcaption");

  const mean = (values) =>
    [values.slice(0, P), values.slice(P)].map((part) => (part.reduce((a, b) => a + b, 0) / part.length).toFixed(2));
  const means = (values) => {
    const [first, again] = mean(values);
    return `${first} at first, ${again} in the repetition`;
  };

  function paint() {
    const t = now.position,
      before = t - P,
      after = before + 1,
      row = tokens.map((_, s) => (s <= t ? weight(t, s) : 0));
    heads.forEach((node, i) => place(node, { "aria-pressed": i === (now.layer - 1) * H + now.head - 1 }));
    arcs.replaceChildren();
    row.forEach((w, s) => {
      if (w < 0.02 || s === t) return;
      const [x0, y0, x1] = [x(t), y(t), x(s)],
        y1 = y(s) + (y(s) < y0 ? BOX + 18 : 0),
        lift = y(s) < y0 ? 22 : Math.min(36, 14 + 3 * Math.abs(t - s));
      const [up, down] = y(s) < y0 ? [y0 - lift, y1 + lift] : [y0 - lift, y1 - lift];
      draw(arcs, "path", {
        d: `M${x0} ${y0}C${x0} ${up} ${x1} ${down} ${x1} ${y1}`,
        "stroke-width": 1 + 4 * w,
        opacity: Math.max(w, 0.15),
      });
    });
    boxes.forEach(({ node, frame, number }, s) => {
      const self = s === t,
        twin = before >= 0 && s === before,
        target = before >= 0 && s === after;
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

    const ablated = without[`${now.layer}.${now.head}`],
      shown = [ablated, losses];
    off.style.display = ablated ? "" : "none";
    if (ablated) place(off, { points: line(ablated) });
    dots.forEach((dot, i) => {
      dot.style.display = shown[i] ? "" : "none";
      if (shown[i]) place(dot, { cx: graph.x(t), cy: graph.y(shown[i][t]) });
    });
    words.textContent =
      `loss at ${t}: ${losses[t].toFixed(2)} nats` + (ablated ? `, head off: ${ablated[t].toFixed(2)}` : "");
    caption.textContent =
      `loss of the next token at each position, in nats; dashed line: the sequence starts again. ` +
      `Mean: ${means(losses)}` +
      (ablated ? `; with head ${now.layer}.${now.head} off (orange, dashed): ${means(ablated)}.` : ".");
    const best = [...row.entries()]
      .filter(([, w]) => w >= 0.02)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3);
    note.textContent =
      `Head ${now.layer}.${now.head}, from “${tokens[t]}” at ${t}, looks at ` +
      `${best.map(([s, w]) => `“${tokens[s]}” at ${s} (${w.toFixed(2)})`).join(", ") || "nothing much"}. ` +
      (before < 0
        ? "This token was not there before."
        : `The last “${tokens[t]}” was at ${before}, and “${tokens[after]}” came after it: weight ` +
          `${row[after].toFixed(2)}. ` +
          (t + 1 < T ? `Next comes “${tokens[t + 1]}” again.` : ""));
  }
  paint();
}

export default { render };
