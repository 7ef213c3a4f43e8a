// The scores of a causal model, token by token: what is computed now, before, again, or never.
import { add, draw, keep, panel, place, scroller, stepper, tick } from "./base/index.js";

const LEFT = 74,
  TOP = 104,
  RIGHT = 86;

function render({ model, el }) {
  const [tokens, prompt, layers, heads, size] = ["tokens", "prompt", "num_blks", "num_heads", "head_size"].map((key) =>
    model.get(key),
  );
  const now = { step: model.get("step"), cache: model.get("cache") };
  const T = tokens.length - 1,
    steps = tokens.length - prompt,
    cell = Math.min(26, Math.floor((340 - LEFT - RIGHT) / T));
  const short = (word, n = 9) => ([...word].length > n ? [...word].slice(0, n - 1).join("") + "…" : word);

  const walk = add(el, "div", { class: "d2lmini-controls" });
  stepper(walk, { label: "step", max: steps - 1, value: now.step }, (step) => {
    now.step = step;
    keep(model, "step", step);
    paint();
  });
  tick(walk, { label: "keep keys and values (cache)", value: now.cache }, (on) => {
    now.cache = on;
    keep(model, "cache", on);
    paint();
  });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.4em" });

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure");
  const x = (s) => LEFT + s * cell,
    y = (t) => TOP + t * cell,
    height = TOP + T * cell + 6;
  const { svg } = panel(figure, {
    width: 340,
    height,
    x: [0, 1],
    y: [0, 1],
    label: "scores: a row for each query, a column for each key",
  });
  const box = (s, top) => draw(svg, "rect", { x: x(s) + 1, y: top + 1, width: cell - 2, height: cell - 2, rx: 2 });
  const keys = ["keys", "values"].map((name, n) => {
    const top = TOP - 6 - (2 - n) * cell;
    draw(svg, "text", { x: LEFT - 5, y: top + cell / 2 + 4, "text-anchor": "end" }, name);
    return Array.from({ length: T }, (_, s) => box(s, top));
  });
  const above = TOP - 10 - 2 * cell;
  for (let s = 0; s < T; s++)
    draw(
      svg,
      "text",
      { x: x(s) + cell / 2, y: above, "text-anchor": "end", style: "writing-mode: vertical-rl" },
      short(tokens[s], 6),
    );
  const rows = Array.from({ length: T }, (_, t) => ({
    name: draw(svg, "text", { x: LEFT - 5, y: y(t) + cell / 2 + 4, "text-anchor": "end" }, short(tokens[t])),
    cells: Array.from({ length: T }, (_, s) => box(s, y(t))),
    cross: Array.from({ length: T - t - 1 }, (_, i) => {
      const a = x(t + 1 + i) + 4,
        b = y(t) + 4;
      return draw(svg, "path", {
        d: `M${a} ${b}l${cell - 8} ${cell - 8}m0 ${8 - cell}l${8 - cell} ${cell - 8}`,
        stroke: "currentColor",
        opacity: 0.3,
      });
    }),
    next: draw(svg, "text", { x: x(T) + 6, y: y(t) + cell / 2 + 4 }),
  }));
  const caption = add(figure, "figcaption");

  const side = add(panels, "div"),
    sheet = add(scroller(side), "table");
  add(sheet, "caption", {}, `what it costs a model of ${layers} layers with ${heads} heads of ${size}`);
  const head = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  add(head, "td");
  for (const name of ["cache", "no cache"]) add(head, "th", { scope: "col" }, name);
  const LINES = {
    tokens: "tokens that go in, now",
    tokens_so_far: "so far",
    scores: "scores computed, now",
    scores_so_far: "so far",
    kept: "numbers kept",
  };
  const counters = Object.fromEntries(
    Object.entries(LINES).map(([key, name]) => {
      const row = add(body, "tr");
      add(row, "th", { scope: "row" }, name);
      return [key, [true, false].map(() => add(row, "td"))];
    }),
  );
  add(
    side,
    "div",
    { style: "margin-top: 6px" },
    `A score is one query times one key, in each of ${layers} × ${heads} heads. ` +
      `Kept are 2 (key and value) × ${layers} layers × ${heads} heads × ${size} numbers for each token.`,
  );

  function counts(step, cache) {
    const length = prompt + step,
      fresh = cache && step ? 1 : length,
      old = length - fresh;
    const before = step ? counts(step - 1, cache) : { tokens_so_far: 0, scores_so_far: 0 };
    const scores = (layers * heads * (length * (length + 1) - old * (old + 1))) / 2;
    return {
      tokens: fresh,
      scores,
      kept: cache ? 2 * layers * heads * size * length : 0,
      tokens_so_far: before.tokens_so_far + fresh,
      scores_so_far: before.scores_so_far + scores,
    };
  }

  const LOOKS = {
    now: { fill: "var(--blue)", "fill-opacity": 0.85, stroke: "var(--blue)", "stroke-opacity": 1 },
    again: { fill: "var(--orange)", "fill-opacity": 0.6, stroke: "var(--orange)", "stroke-opacity": 1 },
    before: { fill: "var(--blue)", "fill-opacity": 0.16, stroke: "var(--blue)", "stroke-opacity": 0.6 },
    masked: { fill: "none", "fill-opacity": 1, stroke: "currentColor", "stroke-opacity": 0.2 },
    later: { fill: "none", "fill-opacity": 1, stroke: "currentColor", "stroke-opacity": 0.2 },
  };
  const show = (node, what) => place(node, { ...LOOKS[what], "data-what": what });

  function paint() {
    const length = prompt + now.step,
      first = now.step ? length - 1 : 0; // rows from `first` are new
    const of = (t) => (t >= length ? "later" : t >= first ? "now" : now.cache ? "before" : "again");
    rows.forEach(({ name, cells, cross, next }, t) => {
      cells.forEach((node, s) => show(node, t >= length ? "later" : s > t ? "masked" : of(t)));
      for (const node of cross) node.style.display = t < length ? "" : "none";
      next.textContent = t === length - 1 ? `→ ${short(tokens[t + 1])}` : "";
      for (const node of [name, next]) place(node, { opacity: t >= length ? 0.6 : 1 });
      place(name, { "font-weight": of(t) === "now" ? 600 : 400 });
    });
    const old = now.cache
      ? "pale: computed before (keys and values are in the cache, scores are needed no more)"
      : "orange: computed again, to the same number";
    caption.textContent = `blue: computed now; ${now.step ? `${old}; ` : ""}crossed: masked, no query looks ahead`;
    for (const strip of keys) strip.forEach((node, s) => show(node, of(s)));
    const both = [counts(now.step, true), counts(now.step, false)];
    for (const [key, cells] of Object.entries(counters))
      cells.forEach((node, n) => {
        node.textContent = both[n][key].toLocaleString("en");
        node.style.fontWeight = (n === 0) === now.cache ? 600 : 400;
      });
    const given = `“${tokens[length]}” comes next.`,
      last = tokens[length - 1];
    note.textContent =
      now.step === 0
        ? `Step 0: all ${prompt} token${prompt > 1 ? "s" : ""} of the prompt go in at once; the mask lets each ` +
          `see itself and those before. The last row predicts: ${given}`
        : now.cache
          ? `Step ${now.step}: “${last}” alone goes in: one query, one new key and value; the other ${length - 1} ` +
            `come from the cache. ${given}`
          : `Step ${now.step}: all ${length} tokens go in again, though only the row of “${last}” is new. The ` +
            `others come out as before. ${given}`;
  }
  paint();
}

export default { render };
