// Depth against learning rate: which settings of a recipe train, and the losses of one over the steps.
import { add, button, choice, draw, fold, keep, panel, place, rove, scroller, views } from "./base/index.js";

const WIDE = 340,
  HIGH = 200,
  LEFT = 34,
  RIGHT = 14,
  TOP = 16,
  BOTTOM = 36;

function render({ model, el }) {
  const recipes = model.get("recipes"),
    depths = model.get("depths"),
    rates = model.get("rates");
  const steps = model.get("steps"),
    every = model.get("every"),
    seeds = model.get("seeds"),
    verdicts = model.get("verdicts"),
    signs = model.get("signs");
  const unigram = model.get("unigram"),
    uniform = model.get("uniform"),
    star = model.get("best");
  const now = Object.fromEntries(["recipe", "other", "depth", "rate"].map((key) => [key, model.get(key)]));
  let over = null; // the cell under the pointer, which goes before the chosen one
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
    paint();
  };
  const named = (name) => recipes.find((card) => card.name === name);
  const shown = () => [named(now.recipe), now.other !== now.recipe && named(now.other)].filter(Boolean);
  const say = (x) =>
    (Math.abs(x) < 100 ? x.toFixed(2) : x < 1e5 ? Math.round(x).toLocaleString("en") : x.toExponential(0)).replace(
      "-",
      "−",
    );
  const blocks = (d) => `${depths[d]} block${depths[d] === 1 ? "" : "s"}`;
  const finite = recipes.flatMap(({ loss }) => loss.flat()).filter((loss) => loss !== null),
    least = Math.min(unigram, ...finite);
  // 0: no better than the frequencies
  const share = (loss) => (loss === null || least === unigram ? 0 : Math.max(0, (unigram - loss) / (unigram - least)));

  const names = Object.fromEntries(recipes.map(({ name }) => [name, name]));
  const controls = add(el, "div", { class: "d2lmini-controls" });
  choice(controls, { label: "recipe", options: names, value: now.recipe }, (recipe) => change({ recipe }));
  if (recipes.length > 1)
    choice(controls, { label: "beside it", options: { "": "nothing", ...names }, value: now.other }, (other) =>
      change({ other }),
    );

  const boxes = views(el, "map", ["recipe", "beside it"]);
  const maps = ["--blue", "--orange"].map((colour, i) => map(boxes[i], colour));
  const panels = add(el, "div", { class: "d2lmini-panels" });

  // One map: a button in each cell of a table, one stop of the Tab key.
  function map(figure, colour) {
    figure.style.maxWidth = "30rem";
    const title = add(figure, "div", {
      style: `font-weight: 600; border-left: 4px solid var(${colour}); padding-left: 6px`,
    });
    const sheet = add(scroller(figure), "table", {
      style: `table-layout: fixed; width: 100%; min-width: ${3.2 + 3.2 * rates.length}rem`,
    });
    const top = add(sheet, "thead"),
      group = add(top, "tr"),
      heads = add(top, "tr"),
      body = add(sheet, "tbody"),
      tight = "padding: 2px 0; text-align: center";
    add(group, "td", { style: "width: 3.2rem" });
    add(group, "th", { scope: "colgroup", colspan: rates.length, style: tight }, "learning rate");
    add(heads, "th", { scope: "col", style: tight }, "blocks");
    for (const rate of rates) add(heads, "th", { scope: "col", style: tight }, rate);
    const cells = depths.map((depth, d) => {
      const row = add(body, "tr");
      add(row, "th", { scope: "row", style: tight }, depth);
      return rates.map((_, n) => {
        const cell = add(row, "td", { style: "padding: 0" });
        const node = button(
          cell,
          "",
          () => {
            node.focus();
            choose(d, n);
          },
          {
            "data-cell": `${d} ${n}`,
            style:
              "display: block; width: 100%; height: 34px; padding: 0; border: 0; border-radius: 0; line-height: " +
              "1.2; font-size: max(12px, 0.85em)",
          },
        );
        cell.addEventListener("pointerenter", () => {
          over = [d, n];
          paint();
        });
        node.addEventListener("focus", () => choose(d, n));
        const number = add(node, "div");
        node.append(" ");
        return { cell, node, number, word: add(node, "div", { style: "font-size: 11px" }) };
      });
    });
    body.addEventListener("pointerleave", () => {
      over = null;
      paint();
    });
    const wide = rates.length,
      inside = (x, end) => x >= 0 && x < end;
    rove(
      cells.flat().map(({ node }) => node),
      {
        entry: now.depth * wide + now.rate,
        to(i, down, right) {
          const d = Math.floor(i / wide) + down,
            n = (i % wide) + right;
          return inside(d, depths.length) && inside(n, wide) ? d * wide + n : -1;
        },
      },
    );
    return { figure, title, sheet, cells, told: add(figure, "figcaption", { "aria-live": "polite" }) };
  }
  function choose(depth, rate) {
    over = null;
    change({ depth, rate });
  }

  const figure = add(panels, "figure"),
    title = add(figure, "div", { style: "font-weight: 600" });
  const { svg } = panel(figure, {
    width: WIDE,
    height: HIGH,
    x: [0, 1],
    y: [0, 1],
    label: "losses over the steps of the chosen cell",
  });
  const caption = add(figure, "figcaption");
  const note = add(panels, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 2.8em",
  });

  // the same axes for all, so that curves can be compared; what is higher stands at the top edge
  const low = Math.floor(least * 2) / 2,
    high = Math.ceil((uniform + 0.75) * 2) / 2;
  const x = (step) => LEFT + (step / steps) * (WIDE - LEFT - RIGHT);
  const y = (loss) => TOP + ((high - Math.min(high, Math.max(low, loss))) / (high - low)) * (HIGH - TOP - BOTTOM);
  for (let v = Math.ceil(low); v <= high; v += Math.ceil((high - low) / 6)) {
    draw(svg, "path", { d: `M${LEFT} ${y(v)}H${WIDE - RIGHT}`, stroke: "currentColor", opacity: 0.12 });
    draw(svg, "text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, v);
  }
  for (const [share, anchor] of [
    [0, "start"],
    [1, "end"],
  ])
    draw(svg, "text", { x: x(steps * share), y: HIGH - BOTTOM + 16, "text-anchor": anchor }, steps * share);
  draw(svg, "text", { x: x(steps / 2), y: HIGH - 12, "text-anchor": "middle" }, "step");
  // the second label stands below the curves of those that are stuck there
  [
    [uniform, "all characters alike", -5, "2 4"],
    [unigram, "character frequencies", 25, "6 3"],
  ].forEach(([loss, text, away, dash]) => {
    draw(svg, "path", { d: `M${LEFT} ${y(loss)}H${WIDE - RIGHT}`, stroke: "currentColor", "stroke-dasharray": dash });
    draw(svg, "text", { x: WIDE - RIGHT - 8, y: y(loss) + away, "text-anchor": "end" }, `${text}: ${say(loss)}`);
  });
  const lines = draw(svg, "g");

  const key = add(fold(el, "what colours and signs mean"), "div", { class: "d2lmini-key" });
  if (least < unigram) {
    // a loss that is no lower has no shade
    add(key, "span", {}, `The bluer, the lower the loss: ${say(unigram)} `);
    add(key, "span", {
      "aria-hidden": "true",
      style:
        "display: inline-block; width: 5rem; height: 0.8em; border: 1px solid #8886; background: " +
        "linear-gradient(to right, transparent, color-mix(in srgb, #1f77b4 70%, transparent))",
    });
    add(key, "span", {}, ` ${say(least)}, for all recipes alike. `);
  }
  add(
    key,
    "span",
    {},
    `${star} best: the lowest loss of those of a depth that train. ` +
      `${signs[1]} stuck: hardly better than the character frequencies alone, or worse. ${signs[2]} diverged: ` +
      `worse than at the start and than an even guess, or not finite. Of the curves: dots are means of ` +
      `${every === 1 ? "one step" : `${every} steps`} of the training, the diamond is the end on the validation ` +
      `text, ✕ the last step before numbers are not finite.` +
      (seeds > 1 ? ` Of ${seeds} seeds the first is shown.` : ""),
  );

  function paint() {
    const cards = shown(),
      [d, n] = over ?? [now.depth, now.rate];
    boxes.row.style.display = cards.length > 1 ? "" : "none";
    if (cards.length === 1) boxes.show(0);
    maps.forEach(({ figure, title, sheet, cells, told }, i) => {
      const card = cards[i];
      figure.style.display = card ? "" : "none";
      if (!card) return;
      title.textContent = card.name;
      place(sheet, { "aria-label": `${card.name}: blocks in rows, learning rates in columns` });
      if (told.textContent !== card.told) told.textContent = card.told;
      cells.forEach((row, d2) => row.forEach((cell, n2) => fill(cell, card, d2, n2)));
    });
    title.textContent = `${blocks(d)}, learning rate ${rates[n]}`;
    lines.replaceChildren();
    cards.forEach((card, i) => curve(card, d, n, ["--blue", "--orange"][i], i > 0));
    const top = Math.max(...cards.flatMap((card) => [...card.curves[d][n], card.loss[d][n] ?? 0]));
    caption.textContent =
      `Loss in nats a character.` +
      `${cards.length > 1 ? ` Blue: ${cards[0].name}. Orange, dashed: ${cards[1].name}.` : ""}` +
      `${top > high ? ` ▲: above the axis, up to ${say(top)}.` : ""}`;
    note.replaceChildren();
    cards.forEach((card) => add(note, "div", {}, tell(card, d, n)));
  }

  function fill({ cell, node, number, word }, card, d, n) {
    const loss = card.loss[d][n],
      kind = card.verdict[d][n],
      best = card.best[d] === n,
      chosen = now.depth === d && now.rate === n;
    cell.className = kind === 2 ? "masked" : "shade";
    cell.style.setProperty("--w", share(loss).toFixed(3));
    number.textContent = [best ? star : signs[kind], loss === null ? "" : say(loss)].filter(Boolean).join(" ");
    word.textContent = kind ? verdicts[kind] : best ? "best" : "";
    number.style.fontWeight = best ? 700 : 400;
    place(node, {
      "aria-pressed": chosen,
      "data-verdict": verdicts[kind],
      "aria-label":
        `${number.textContent} ${word.textContent}, ${blocks(d)}, rate ${rates[n]}: ` +
        `${verdicts[kind]}${loss === null ? "" : `, loss ${say(loss)}`}${best ? ", best rate of this depth" : ""}`,
    });
    node.style.boxShadow = chosen
      ? "inset 0 0 0 3px var(--orange)"
      : over?.[0] === d && over[1] === n
        ? "inset 0 0 0 2px currentColor"
        : "none";
  }

  function curve(card, d, n, colour, dashed) {
    const losses = card.curves[d][n],
      made = card.steps[d][n],
      end = card.loss[d][n],
      paint = `var(${colour})`;
    const points = losses.map((loss, i) => [
      x((i * every + Math.min((i + 1) * every, made)) / 2),
      y(loss),
      loss > high,
    ]);
    const group = draw(lines, "g", { "data-recipe": card.name, "data-points": points.length });
    if (points.length)
      draw(group, "path", {
        d: "M" + points.map((p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`).join("L"),
        fill: "none",
        stroke: paint,
        "stroke-width": 2,
        ...(dashed ? { "stroke-dasharray": "6 3" } : {}),
      });
    const above = (px, py) =>
      draw(group, "path", { d: `M${px - 5} ${py + 5}L${px} ${py - 4}L${px + 5} ${py + 5}Z`, fill: paint });
    for (const [px, py, out] of points)
      if (out) above(px, py);
      else draw(group, "circle", { cx: px, cy: py, r: 2.5, fill: paint });
    if (end !== null && end > high) above(x(steps), y(end));
    else if (end !== null)
      draw(group, "path", {
        d: `M${x(steps)} ${y(end) - 7}l7 7l-7 7l-7 -7Z`,
        fill: dashed ? "none" : paint,
        stroke: paint,
        "stroke-width": 2,
        "data-end": "",
      });
    else
      draw(group, "path", {
        d: `M${x(made) - 6} ${(points.at(-1)?.[1] ?? TOP) - 6}l12 12m0 -12l-12 12`,
        stroke: paint,
        "stroke-width": 3,
        "data-broken": made,
      });
  }

  function tell(card, d, n) {
    const loss = card.loss[d][n],
      kind = card.verdict[d][n],
      made = card.steps[d][n],
      off = loss === null ? 0 : loss - unigram;
    const at = `${card.name}: `,
      far = Math.abs(off) < 0.005 ? "just" : `${say(Math.abs(off))} ${off < 0 ? "below" : "above"}`,
      against = `${say(loss ?? 0)}, ${far} that of the character frequencies`;
    const found =
      kind === 0
        ? `it trains. After ${steps} steps its loss is ` +
          `${against}.${card.best[d] === n ? " No other rate does better at this depth." : ""}`
        : kind === 1
          ? `it is stuck. After ${steps} steps its loss is ${against}.`
          : loss !== null
            ? `it diverged. After ${steps} steps its loss is ${say(loss)}, worse than at the first step and than ` +
              `${say(uniform)}, that of all characters alike.`
            : made < steps
              ? `it diverged. In step ${made + 1} of ${steps} its loss or its gradient is not finite.`
              : `it diverged. After ${steps} steps its loss on the validation text is not finite.`;
    return at + found + (seeds > 1 ? ` With ${card.agree[d][n]} of ${seeds} seeds it trains.` : "");
  }
  paint();
}

export default { render };
