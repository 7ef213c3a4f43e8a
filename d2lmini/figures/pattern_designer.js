// A pattern joined from parts: its matrix, what has met after n layers, the way from an output to the inputs, its cost.
import {
  add,
  button,
  choice,
  draw,
  fold,
  keep,
  panel,
  place,
  scroller,
  slider,
  tick,
  unpack,
  views,
} from "./base/index.js";

const WIDE = 340,
  LEFT = 26,
  TOP = 20,
  FOOT = 22;

function render({ model, el }) {
  const T = model.get("num_tokens"),
    limits = model.get("limits"),
    presets = model.get("presets"),
    draws = model.get("draws");
  const orders = unpack(model.get("orders")),
    most = limits.num_random[1],
    PARTS = Object.keys(Object.values(presets)[0]);
  const now = Object.fromEntries([...PARTS, "draw", "layers", "query"].map((key) => [key, model.get(key)]));
  const number = (x) => Math.round(x).toLocaleString("en"),
    many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const share = (x) => `${Number((100 * x).toPrecision(3))} %`;
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
    paint();
  };

  // The masks of d2lmini.efficient and sliding_window_mask, joined.
  function attends(t, s, drawn) {
    const { window, dilation, block_size, num_global, every, causal } = now,
      off = Math.abs(t - s);
    if (causal && s > t) return false;
    return (
      (off < window * dilation && off % dilation === 0) ||
      (block_size > 0 && Math.floor(t / block_size) === Math.floor(s / block_size)) ||
      t < num_global ||
      s < num_global ||
      (every > 0 && t % every === 0) ||
      drawn.includes(s)
    );
  }
  function pattern() {
    return Array.from({ length: T }, (_, t) => {
      const at = ((Number(now.causal) * draws + now.draw) * T + t) * most,
        drawn = orders.subarray(at, at + now.num_random);
      return Array.from({ length: T }, (_, s) => s).filter((s) => attends(t, s, drawn));
    });
  }
  // After how many layers t depends on s: boolean powers, as layers_per_pair. -1: never.
  function layersPerPair(keys) {
    const layers = keys.map((_, t) => keys.map((_, s) => (t === s ? 0 : -1)));
    for (let n = 1, grown = true; grown; n++) {
      grown = false;
      const before = layers.map((row) => row.map((met) => met >= 0)); // what had met before this layer
      layers.forEach((row, t) =>
        row.forEach((met, s) => {
          if (met < 0 && keys[t].some((u) => before[u][s])) {
            row[s] = n;
            grown = true;
          }
        }),
      );
    }
    return layers;
  }
  // Pairs of the same pattern among N tokens, row by row without a mask, as PatternDesigner.pairs.
  function pairs(N) {
    const { dilation: d, block_size: size, num_global, every, num_random, causal } = now,
      far = ((now.window === T ? N : now.window) - 1) * d;
    let sum = 0;
    for (let t = 0; t < N; t++) {
      const end = causal ? t + 1 : N,
        told = Math.min(num_global, end);
      const near = (low, high) =>
        Math.max(
          0,
          Math.floor((Math.min(high, t + far + 1) - 1 - t) / d) - Math.floor((Math.max(low, t - far) - 1 - t) / d),
        );
      const start = size ? t - (t % size) : 0,
        stop = Math.min(start + size, end),
        both = Math.max(start, Math.min(stop, told));
      let seen =
        stop - start + told - (both - start) + near(0, end) - near(start, stop) - near(0, told) + near(start, both);
      if (t < num_global || (every && t % every === 0)) seen = end;
      sum += seen + (Math.min(num_random, end) * (end - seen)) / end;
    }
    return sum;
  }

  const top = add(el, "div", { class: "d2lmini-controls" });
  const which = choice(
    top,
    {
      label: "pattern",
      options: { "": "your own", ...Object.fromEntries(Object.keys(presets).map((name) => [name, name])) },
      value: "",
    },
    (name) => {
      if (name) fill(presets[name]);
      else paint();
    },
  );
  const causal = tick(top, { label: "causal", value: now.causal }, (on) => change({ causal: on }));
  const none = (x) => (x ? String(x) : "none"),
    says = { window: (x) => (x === T ? "all" : none(x)), dilation: String };
  const labels = {
    window: "window",
    dilation: "dilation",
    block_size: "block",
    num_global: "global tokens",
    every: "chosen tokens, one in",
    num_random: "random keys",
  };
  const move = (input, value) => {
    input.value = value;
    input.dispatchEvent(new Event("input"));
  };
  function fill(parts) {
    for (const key of PARTS) {
      now[key] = parts[key];
      keep(model, key, parts[key]);
    }
    causal.checked = now.causal;
    for (const [key, input] of Object.entries(inputs)) move(input, now[key]);
  }
  const boxes = views(el, "view", ["the pattern", "the way down"]),
    cell = (WIDE - LEFT - 8) / T,
    HIGH = TOP + T * cell + 8;
  const x = (s) => LEFT + (s + 0.5) * cell;
  function chart(figure, label, height, at) {
    // pointing at a place follows the query that `at` finds there
    const space = panel(figure, { width: WIDE, height, x: [0, WIDE], y: [0, height], label });
    for (const kind of ["pointermove", "pointerdown"])
      space.svg.addEventListener(kind, (event) => {
        const [right, up] = space.invert(event),
          query = Math.floor(at(right, height - up));
        if (query >= 0 && query < T && query !== now.query) move(asked, query);
      });
    return { svg: space.svg, caption: add(figure, "figcaption") };
  }
  const matrix = chart(
    boxes[0],
    "the pattern: a row for each query, a column for each key",
    HIGH,
    (_, down) => (down - TOP) / cell,
  );
  const band = draw(matrix.svg, "rect", {
    x: LEFT,
    width: T * cell,
    height: cell,
    fill: "var(--orange)",
    "fill-opacity": 0.15,
  });
  const frame = {
    x: LEFT,
    y: TOP,
    width: T * cell,
    height: T * cell,
    fill: "none",
    stroke: "currentColor",
    opacity: 0.4,
  };
  const cells = Array.from({ length: T * T }, (_, i) =>
    draw(matrix.svg, "rect", { "data-pair": `${Math.floor(i / T)} ${i % T}` }),
  );
  draw(matrix.svg, "rect", frame);
  for (let t = 0; t < T; t += 5) {
    draw(matrix.svg, "text", { x: LEFT - 5, y: TOP + (t + 0.5) * cell + 4, "text-anchor": "end" }, t);
    draw(matrix.svg, "text", { x: x(t), y: TOP - 6, "text-anchor": "middle" }, t);
  }
  const tower = chart(
    boxes[1],
    "the way from the output of the query down to the inputs, layer by layer",
    HIGH,
    (right) => (right - LEFT) / cell,
  );
  for (let t = 0; t < T; t += 5) draw(tower.svg, "text", { x: x(t), y: HIGH - 6, "text-anchor": "middle" }, t);
  const stay = draw(tower.svg, "path", {
    fill: "none",
    stroke: "currentColor",
    "stroke-dasharray": "2 3",
    opacity: 0.5,
  });
  const ways = draw(tower.svg, "path", { fill: "none", stroke: "var(--blue)", "stroke-opacity": 0.5 });
  const dots = draw(tower.svg, "g");

  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.2em" });
  const sliding = add(el, "div", { class: "d2lmini-controls d2lmini-compact" });
  const inputs = Object.fromEntries(
    Object.entries(labels).map(([key, label]) => [
      key,
      slider(
        sliding,
        { label, min: limits[key][0], max: limits[key][1], step: 1, value: now[key], say: says[key] ?? none },
        (x) => change({ [key]: x }),
      ),
    ]),
  );
  button(top, "draw again", () => change({ draw: (now.draw + 1) % draws }));
  slider(sliding, { label: "layers", min: 1, max: T - 1, step: 1, value: now.layers, digits: 0 }, (layers) =>
    change({ layers }),
  );
  const asked = slider(sliding, { label: "query", min: 0, max: T - 1, step: 1, value: now.query, digits: 0 }, (query) =>
    change({ query }),
  );

  const folded = fold(el, "longer sequences");
  const sheet = add(scroller(folded), "table"),
    heads = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  add(
    sheet,
    "caption",
    {},
    "The same pattern in longer sequences. The parts keep their numbers; a window of all and the chosen tokens " +
      "grow with T.",
  );
  for (const text of ["tokens T", "pairs", "of T²", "keys a query"]) add(heads, "th", { scope: "col" }, text);
  const costs = [T, ...model.get("lengths")].map((length) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, number(length));
    return { length, cells: [add(row, "td"), add(row, "td"), add(row, "td")] };
  });

  add(
    folded,
    "div",
    { class: "d2lmini-key" },
    "Global tokens see all and are seen by all; chosen tokens see all. Random keys of longer sequences are " +
      "counted on average. " +
      "A mask alone saves no time: a kernel has to compute these pairs and no others.",
  );

  let known = "",
    keys,
    layers; // of the parts that they were computed from
  function paint() {
    const { query, layers: n } = now,
      parts = JSON.stringify([...PARTS, "draw"].map((key) => now[key]));
    if (parts !== known) {
      known = parts;
      keys = pattern();
      layers = layersPerPair(keys);
      which.value = Object.keys(presets).find((name) => PARTS.every((key) => presets[name][key] === now[key])) ?? "";
      cost();
    }
    const met = (t, s, n) => layers[t][s] >= 0 && layers[t][s] <= n;
    cells.forEach((node, i) => {
      const t = Math.floor(i / T),
        s = i % T,
        seen = keys[t].includes(s),
        size = seen ? cell - 1 : met(t, s, n) ? cell * 0.4 : 0;
      place(node, {
        x: x(s) - size / 2,
        y: TOP + (t + 0.5) * cell - size / 2,
        width: size,
        height: size,
        "data-seen": seen,
        "data-layers": layers[t][s],
        fill: t === query ? "var(--orange)" : "var(--blue)",
        "fill-opacity": seen ? 0.9 : 0.7,
      });
    });
    place(band, { y: TOP + query * cell });
    climb(met);
    tell(met);
  }

  // The positions of each layer on which the query's output depends, and the pairs that bring them.
  function climb(met) {
    const { query, layers: n } = now,
      gap = (HIGH - TOP - FOOT) / n,
      y = (layer) => HIGH - FOOT - 6 - layer * gap;
    const within = Array.from({ length: n + 1 }, (_, layer) => keys.map((_, s) => met(query, s, n - layer)));
    let pairs = "",
      same = "";
    dots.replaceChildren();
    for (let layer = 0; layer <= n; layer++) {
      if (layer % Math.ceil(14 / gap) === 0 || layer === n)
        draw(dots, "text", { x: LEFT - 8, y: y(layer) + 4, "text-anchor": "end" }, layer || "in");
      for (let s = 0; s < T; s++) {
        const lit = within[layer][s];
        draw(dots, "circle", {
          cx: x(s),
          cy: y(layer),
          r: Math.min(lit ? 4 : 2, gap / 3),
          fill: lit ? (layer ? "var(--blue)" : "var(--orange)") : "currentColor",
          opacity: lit ? 1 : 0.35,
          "data-lit": lit,
          "data-layer": layer,
        });
        if (!lit || !layer) continue;
        for (const u of keys[s])
          pairs += `M${x(s).toFixed(1)} ${y(layer).toFixed(1)}L${x(u).toFixed(1)} ${y(layer - 1).toFixed(1)}`;
        if (!keys[s].includes(s)) same += `M${x(s).toFixed(1)} ${y(layer).toFixed(1)}V${y(layer - 1).toFixed(1)}`;
      }
    }
    place(ways, { d: pairs });
    place(stay, { d: same });
  }

  function cost() {
    const here = keys.reduce((sum, row) => sum + row.length, 0);
    for (const {
      length,
      cells: [a, b, c],
    } of costs) {
      const count = length === T ? here : pairs(length),
        about = length !== T && now.num_random ? "≈ " : "";
      a.textContent = about + number(count);
      b.textContent = about + share(count / length ** 2);
      c.textContent = about + Number((count / length).toPrecision(3)).toLocaleString("en");
    }
    matrix.caption.textContent =
      `${here} pairs of ${T * T}, ${share(here / T ** 2)}. Squares: computed in each layer; ` +
      `dots: what has met by now through others.`;
  }

  function tell(met) {
    const { query, layers: n, causal: before } = now,
      wanted = layers.flatMap((row, t) => row.filter((_, s) => !before || s <= t));
    const inputs = keys.filter((_, s) => met(query, s, n)).length,
      most = Math.max(...wanted),
      arrived = wanted.filter((l) => l >= 0 && l <= n).length;
    note.textContent =
      `Query ${query} attends to ${many(keys[query].length, "key")}. After ${many(n, "layer")} its output depends ` +
      `on ${inputs} of ${before ? query + 1 : T} inputs` +
      `${before ? " up to its own" : ""}, and ${arrived} of ${wanted.length} pairs have met. ` +
      (wanted.includes(-1)
        ? "Some pairs never meet, however many layers there are."
        : `It takes ${many(most, "layer")} until all have met.`);
    tower.caption.textContent =
      `What the output of query ${query} is made of. Lines: pairs of the pattern; ` +
      `dotted: residual connections alone.`;
  }
  paint();
}

export default { render };
