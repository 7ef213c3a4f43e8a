// A scaling law as a calculator: loss along a budget on one side, models and the best sizes on the other.
import {
  add,
  button,
  choice,
  draggable,
  draw,
  fold,
  keep,
  onArrow,
  panel,
  place,
  rove,
  scroller,
  slider,
  views,
} from "./base/index.js";

const WIDE = 340,
  HIGH = 250,
  LEFT = 44,
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 38,
  FAR = 100; // so far outside of the runs that a law was fitted to, it is not asked
const fitted = (x, [low, high]) => x >= low / FAR && x <= high * FAR;

function render({ model, el }) {
  const laws = model.get("laws"),
    models = model.get("models"),
    limits = model.get("limits");
  const now = Object.fromEntries(["law", "parameters", "tokens"].map((key) => [key, model.get(key)]));
  const log = Math.log10,
    law = () => laws[now.law];
  const inside = (x, [low, high]) => Math.min(high, Math.max(low, x));
  const set = (changes) => {
    for (const [key, value] of Object.entries(changes)) {
      now[key] = value;
      keep(model, key, value);
    }
    paint();
  };

  // the same formulas as ScalingCalculator.reckon and scaling.compute_optimal
  const terms = (N, D, { floor, factors: [A, B], exponents: [a, b] } = law()) => [floor, A * N ** -a, B * D ** -b];
  const loss = (N, D) => terms(N, D).reduce((x, y) => x + y);
  const flops = (N, D) => 6 * N * D;
  function optimum(C, { factors: [A, B], exponents: [a, b] } = law()) {
    const best = (Math.log((a * A) / (b * B)) + b * Math.log(C / 6)) / (a + b);
    const N = Math.exp(Math.min(Math.max(best, 0), Math.log(C / 6)));
    return [N, C / 6 / N];
  }

  // 1.4e12 as 1.4T; FLOPs as a power of ten
  const cut = (x) => Number(x.toPrecision(3)).toString();
  function count(x) {
    const at = Math.max(0, Math.min(4, Math.floor(log(Number(x.toPrecision(3))) / 3)));
    return at === 4 && x >= 1e15 ? power(x) : cut(x / 1000 ** at) + ["", "K", "M", "B", "T"][at];
  }
  function power(x) {
    const [head, tail] = x.toExponential(2).split("e");
    return `${head} × 10${[...String(Number(tail))].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;
  }

  const controls = add(el, "div", { class: "d2lmini-controls" });
  choice(controls, { label: "law", options: laws.map(({ name }) => name), value: now.law }, (n) =>
    set({ law: Number(n) }),
  );
  const which = models.length
    ? choice(
        controls,
        {
          label: "model",
          options: new Map([[-1, "of your own"], ...models.map(({ name }, i) => [i, name])]),
          value: -1,
        },
        (n) => {
          if (n >= 0) fill(models[n]);
          else paint();
        },
      )
    : null;
  const sliding = add(el, "div", { class: "d2lmini-controls d2lmini-compact" });
  const ends = {
    parameters: limits.parameters,
    tokens: limits.tokens,
    budget: [0, 1].map((i) => flops(limits.parameters[i], limits.tokens[i])),
  };
  const inputs = Object.fromEntries(
    Object.entries({ parameters: "parameters N", tokens: "tokens D", budget: "budget in FLOPs" }).map(
      ([key, label]) => [
        key,
        slider(
          sliding,
          {
            label,
            min: ends[key][0],
            max: ends[key][1],
            step: 0.01,
            value: ends[key][0],
            scale: "log",
            say: key === "budget" ? power : count,
          },
          (x) => set(key === "budget" ? { tokens: inside(x / 6 / now.parameters, limits.tokens) } : { [key]: x }),
        ),
      ],
    ),
  );
  const fill = ({ parameters, tokens }) => set({ parameters, tokens });
  button(sliding, "go to the optimum", () => {
    const [N, D] = optimum(flops(now.parameters, now.tokens));
    set({ parameters: N, tokens: D });
  });

  const boxes = views(el, "view", ["loss", "models"]);
  function chart(figure, label, caption) {
    const { svg } = panel(figure, { width: WIDE, height: HIGH, x: [0, 1], y: [0, 1], label });
    add(figure, "figcaption", {}, caption);
    return svg;
  }
  const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low)) * (to - from);
  const x = scale(...limits.parameters.map(log), LEFT, WIDE - RIGHT);
  const decades = ([low, high]) =>
    Array.from({ length: Math.floor(log(high)) - Math.ceil(log(low)) + 1 }, (_, i) => Math.ceil(log(low)) + i);
  function bottom(svg) {
    const all = decades(limits.parameters),
      every = Math.ceil(all.length / 6);
    for (const d of all) {
      draw(svg, "path", { d: `M${x(d)} ${TOP}V${HIGH - BOTTOM}`, stroke: "currentColor", opacity: 0.12 });
      if ((d - all[0]) % every === 0)
        draw(svg, "text", { x: x(d), y: HIGH - BOTTOM + 16, "text-anchor": "middle" }, count(10 ** d));
    }
    draw(svg, "text", { x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle" }, "parameters N");
  }
  // what leaves the axes is cut off there
  const line = (svg, attributes) => {
    const id = `d2lmini-axes-${Math.random().toString(36).slice(2)}`,
      clip = draw(draw(svg, "defs"), "clipPath", { id });
    draw(clip, "rect", { x: LEFT, y: TOP, width: WIDE - LEFT - RIGHT, height: HIGH - TOP - BOTTOM });
    return draw(svg, "path", { fill: "none", "stroke-width": 2, "clip-path": `url(#${id})`, ...attributes });
  };
  const diamond = (svg) => draw(svg, "path", { d: "M0 -8L8 0L0 8L-8 0Z", fill: "var(--blue)", stroke: "currentColor" });

  // loss along the budget
  const first = chart(
    boxes[0],
    "loss against parameters with the same budget",
    "Loss at this budget. Diamond: the optimum. Ring: your choice.",
  );
  bottom(first);
  const marks = draw(first, "g"),
    curve = line(first, { stroke: "var(--blue)" }),
    best = diamond(first),
    point = draw(first, "g");
  draw(point, "circle", { r: 7, fill: "none", stroke: "var(--orange)", "stroke-width": 3 });
  const span = {
    clamp: ([N, y]) => [inside(N, limits.parameters), y],
    step: [0, 0],
    invert(event) {
      const box = first.getBoundingClientRect(),
        [low, high] = limits.parameters.map(log);
      const share = (((event.clientX - box.left) * WIDE) / box.width - LEFT) / (WIDE - RIGHT - LEFT);
      return [10 ** (low + share * (high - low)), 0];
    },
  };
  draggable(
    point,
    span,
    "your choice, along the budget",
    () => [now.parameters, 0],
    ([N]) => along(N),
  );
  place(point, { tabindex: 0 });
  onArrow(point, (down, right) => along(now.parameters * 10 ** (0.05 * (right - down))));
  function along(N) {
    const C = flops(now.parameters, now.tokens),
      low = Math.max(limits.parameters[0], C / 6 / limits.tokens[1]);
    N = inside(N, [low, Math.max(low, Math.min(limits.parameters[1], C / 6 / limits.tokens[0]))]);
    set({ parameters: N, tokens: C / 6 / N });
  }

  // models in the plane of parameters and tokens
  const second = chart(
    boxes[1],
    "published models by parameters and tokens",
    "Dashed: the optimum of every budget. Dotted: this budget. Shaded: the runs that the law was fitted to.",
  );
  bottom(second);
  const y = scale(...limits.tokens.map(log), HIGH - BOTTOM, TOP),
    all = decades(limits.tokens),
    every = Math.ceil(all.length / 7);
  for (const d of all) {
    draw(second, "path", { d: `M${LEFT} ${y(d)}H${WIDE - RIGHT}`, stroke: "currentColor", opacity: 0.12 });
    if ((d - all[0]) % every === 0)
      draw(second, "text", { x: LEFT - 5, y: y(d) + 4, "text-anchor": "end" }, count(10 ** d));
  }
  draw(second, "text", { x: LEFT + 4, y: TOP + 12 }, "tokens D");
  const range = draw(second, "rect", { fill: "var(--blue)", "fill-opacity": 0.15 });
  const path = line(second, { stroke: "var(--blue)", "stroke-dasharray": "7 4" }),
    iso = line(second, { stroke: "currentColor", "stroke-dasharray": "2 4" });
  const ideal = diamond(second),
    here = draw(second, "circle", { r: 8, fill: "none", stroke: "var(--orange)", "stroke-width": 3 });
  const name = draw(second, "text", { "pointer-events": "none", "font-weight": 600 });
  const dots = models.map((m) => {
    const node = draw(second, "g", {
      role: "button",
      "aria-label": `${m.name}: ${count(m.parameters)} parameters, ${count(m.tokens)} tokens`,
      style: "cursor: pointer",
      transform: `translate(${x(log(m.parameters))} ${y(log(m.tokens))})`,
    });
    draw(node, "circle", { class: "d2lmini-reach" });
    draw(node, "circle", { r: 4, fill: "currentColor" });
    node.addEventListener("click", () => {
      node.focus();
      fill(m);
    });
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        fill(m);
      }
    });
    for (const kind of ["pointerenter", "focus"]) node.addEventListener(kind, () => call(m));
    for (const kind of ["pointerleave", "blur"]) node.addEventListener(kind, () => call(models.find(taken)));
    return node;
  });
  if (dots.length) rove(dots);
  const taken = (m) => m.parameters === now.parameters && m.tokens === now.tokens;
  function call(m) {
    name.textContent = m?.name ?? "";
    if (!m) return;
    const at = x(log(m.parameters)),
      left = at > WIDE / 2;
    place(name, { x: at + (left ? -14 : 14), y: y(log(m.tokens)) + 4, "text-anchor": left ? "end" : "start" });
  }

  const sheet = add(scroller(fold(el, "the numbers")), "table"),
    heads = add(add(sheet, "thead"), "tr");
  for (const text of ["", "your choice", "the optimum"])
    add(heads, text ? "th" : "td", text ? { scope: "col" } : {}, text);
  const body = add(sheet, "tbody");
  const cells = [
    "training FLOPs, 6ND",
    "parameters N",
    "tokens D",
    "tokens per parameter",
    "floor E",
    "size: A / Nᵅ",
    "data: B / Dᵝ",
    "loss by this law",
  ].map((text) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, text);
    return [add(row, "td"), add(row, "td")];
  });
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "margin-top: 6px; min-height: 4.2em",
  });

  function paint() {
    const { parameters: N, tokens: D } = now,
      C = flops(N, D),
      [bestN, bestD] = optimum(C),
      L = loss(N, D),
      least = loss(bestN, bestD);
    const column = (N, D) => [
      power(C),
      count(N),
      count(D),
      cut(D / N),
      ...terms(N, D).map((t) => t.toFixed(3)),
      loss(N, D).toFixed(3),
    ];
    const known = fitted(bestN, law().parameters) && fitted(bestD, law().tokens);
    [column(N, D), column(bestN, bestD)].forEach((values, i) =>
      values.forEach((text, n) => {
        cells[n][i].textContent = i && n && !known ? "no claim" : text;
      }),
    );
    for (const [key, value] of [
      ["parameters", N],
      ["tokens", D],
      ["budget", C],
    ]) {
      inputs[key].value = log(value);
      const text = (key === "budget" ? power : count)(value);
      inputs[key].nextElementSibling.textContent = text;
      place(inputs[key], { "aria-valuetext": text });
    }
    const chosen = models.findIndex(taken);
    if (which) which.value = chosen;

    const high = Math.max(L, loss(bestN * 30, bestD / 30), loss(bestN / 30, bestD * 30)),
      pad = 0.08 * (high - least);
    const up = scale(least - pad, high + pad, HIGH - BOTTOM, TOP),
      [from, to] = limits.parameters.map(log);
    const points = Array.from({ length: 161 }, (_, i) => from + (i / 160) * (to - from));
    const shown = points.map((t) => [x(t), up(loss(10 ** t, C / 6 / 10 ** t))]).filter(([, v]) => v > -HIGH);
    curve.setAttribute("d", "M" + shown.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L"));
    place(best, {
      transform: `translate(${x(log(bestN))} ${up(least)})`,
      visibility: x(log(bestN)) >= LEFT && x(log(bestN)) <= WIDE - RIGHT ? "visible" : "hidden",
    });
    place(point, { transform: `translate(${x(log(N))} ${up(L)})` });
    marks.replaceChildren();
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].find((s) => (high - least) / s <= 6) ?? 100;
    for (let v = Math.ceil((least - pad) / step) * step; v < high + pad; v += step) {
      draw(marks, "path", { d: `M${LEFT} ${up(v)}H${WIDE - RIGHT}`, stroke: "currentColor", opacity: 0.12 });
      if (up(v) > TOP + 18)
        draw(marks, "text", { x: LEFT - 5, y: up(v) + 4, "text-anchor": "end" }, v.toFixed(step < 0.1 ? 2 : 1));
    }
    draw(marks, "text", { x: LEFT + 4, y: TOP + 12 }, `loss by this law, ${law().unit}`);

    const at = (n, d) => `${x(log(n)).toFixed(1)} ${y(log(d)).toFixed(1)}`;
    const budgets = [-3, 3].map((far, i) => ends.budget[i] * 10 ** far);
    path.setAttribute("d", "M" + budgets.map((budget) => at(...optimum(budget))).join("L"));
    iso.setAttribute("d", `M${limits.parameters.map((n) => at(n, C / 6 / n)).join("L")}`);
    const [n0, n1] = law().parameters.map((v) => x(log(v))),
      [d0, d1] = law().tokens.map((v) => y(log(v)));
    place(range, { x: n0, width: n1 - n0, y: d1, height: d0 - d1 });
    const [idealX, idealY] = [x(log(bestN)), y(log(bestD))],
      within = idealX >= LEFT && idealX <= WIDE - RIGHT && idealY >= TOP && idealY <= HIGH - BOTTOM;
    place(ideal, { transform: `translate(${at(bestN, bestD)})`, visibility: within ? "visible" : "hidden" });
    place(here, { cx: x(log(N)), cy: y(log(D)) });
    dots.forEach((node, i) => place(node, { "aria-pressed": i === chosen }));
    call(models[chosen]);

    const outside = (N, D) =>
      [
        ["parameters", N],
        ["tokens", D],
      ]
        .filter(([key, v]) => v < law()[key][0] || v > law()[key][1])
        .map(([key]) => key);
    const told = [],
      mine = outside(N, D),
      ideals = outside(bestN, bestD);
    if (models[chosen])
      told.push(
        `${models[chosen].name}${models[chosen].note ? ` (N: ${models[chosen].note})` : ""}: ` +
          "the loss is what this law expects of its N and D, not a loss that was measured.",
      );
    if (!known)
      told.push(
        `The optimum is more than ${FAR} times outside of the runs that the law was fitted to: ` +
          "of it the law says nothing.",
      );
    else
      told.push(
        `With the same FLOPs the optimum has ${cut(bestN / N)} times the parameters, and its loss is ` +
          `${(L - least).toFixed(3)} lower.`,
      );
    if (mine.length || ideals.length)
      told.push(
        `Outside of the law's range (N from ${law().parameters.map(count).join(" to ")}, D from ` +
          `${law().tokens.map(count).join(" to ")}): ` +
          [
            mine.length ? `your ${mine.join(" and ")}` : "",
            ideals.length ? `the optimum's ${ideals.join(" and ")}` : "",
          ]
            .filter(Boolean)
            .join("; ") +
          ". There the law is a guess.",
      );
    else told.push("Both are within the range of the runs that the law was fitted to.");
    if (law().note) told.push(`Of the law: ${law().note}.`);
    note.textContent = told.join(" ");
  }
  paint();
}

export default { render };
