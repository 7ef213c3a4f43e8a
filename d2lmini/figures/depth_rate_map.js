// Depth against learning rate: which settings of a recipe train, and the losses of one over the steps.
import { add, button, choice, draw, fold, keepAll, panel, place, rove, scroller, views } from "./base/index.js";
import { bounds, highest, middles, share } from "./numbers/depth_rate_map.js";

/**
 * @typedef {import("./numbers/depth_rate_map.js").Card} Card
 * @typedef {{ recipes: Card[], depths: number[], rates: string[], steps: number, every: number, seeds: number,
 *   verdicts: string[], signs: string[], unigram: number, uniform: number, best: string, recipe: string, other: string,
 *   depth: number, rate: number, over: number[] | null } & ReturnType<typeof bounds>} State `over`: the cell under the
 *   pointer, which goes before the chosen one
 */

const WIDE = 340,
  HIGH = 200,
  LEFT = 34,
  RIGHT = 14,
  TOP = 16,
  BOTTOM = 36;
const COLOURS = ["--blue", "--orange"];
const GIVEN = ["recipes", "depths", "rates", "steps", "every", "seeds", "verdicts", "signs", "best"],
  MORE = ["unigram", "uniform", "recipe", "other", "depth", "rate"];

const say = (/** @type {number} */ x) =>
  (Math.abs(x) < 100 ? x.toFixed(2) : x < 1e5 ? Math.round(x).toLocaleString("en") : x.toExponential(0)).replace(
    "-",
    "−",
  );
const blocks = (/** @type {number} */ depth) => `${depth} block${depth === 1 ? "" : "s"}`;

// The map of a recipe: a button in each cell of a table, one stop of the Tab key. `look`: a cell is pointed at, or none.
function map(figure, colour, /** @type {State} */ state, { look, choose }) {
  const { depths, rates } = state,
    wide = rates.length;
  figure.style.maxWidth = "30rem";
  const title = add(figure, "div", {
    style: `font-weight: 600; border-left: 4px solid var(${colour}); padding-left: 6px`,
  });
  const sheet = add(scroller(figure), "table", {
    style: `table-layout: fixed; width: 100%; min-width: ${3.2 + 3.2 * wide}rem`,
  });
  const top = add(sheet, "thead"),
    group = add(top, "tr"),
    heads = add(top, "tr"),
    body = add(sheet, "tbody"),
    tight = "padding: 2px 0; text-align: center";
  add(group, "td", { style: "width: 3.2rem" });
  add(group, "th", { scope: "colgroup", colspan: wide, style: tight }, "learning rate");
  add(heads, "th", { scope: "col", style: tight }, "blocks");
  for (const rate of rates) add(heads, "th", { scope: "col", style: tight }, rate);
  const cells = depths.map((depth, d) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row", style: tight }, depth);
    return rates.map((_, n) => {
      const cell = add(row, "td", { style: "padding: 0" });
      const style =
        "display: block; width: 100%; height: 34px; padding: 0; border: 0; border-radius: 0; line-height: " +
        "1.2; font-size: max(12px, 0.85em)";
      const act = () => {
        node.focus();
        choose(d, n);
      };
      const node = button(cell, "", act, { "data-cell": `${d} ${n}`, style });
      cell.addEventListener("pointerenter", () => look([d, n]));
      node.addEventListener("focus", () => choose(d, n));
      const number = add(node, "div");
      node.append(" ");
      return { cell, node, number, word: add(node, "div", { style: "font-size: 11px" }) };
    });
  });
  body.addEventListener("pointerleave", () => look(null));
  const nodes = cells.flat().map(({ node }) => node),
    inside = (x, end) => x >= 0 && x < end;
  rove(nodes, {
    entry: state.depth * wide + state.rate,
    to(i, down, right) {
      const d = Math.floor(i / wide) + down,
        n = (i % wide) + right;
      return inside(d, depths.length) && inside(n, wide) ? d * wide + n : -1;
    },
  });
  const told = add(figure, "figcaption", { "aria-live": "polite" });

  return (/** @type {Card=} */ card) => {
    figure.style.display = card ? "" : "none";
    if (!card) return;
    title.textContent = card.name;
    place(sheet, { "aria-label": `${card.name}: blocks in rows, learning rates in columns` });
    if (told.textContent !== card.told) told.textContent = card.told;
    cells.forEach((row, d) => row.forEach((cell, n) => fill(cell, state, card, d, n)));
  };
}

// Of a cell its text, its shade and its frame.
function fill({ cell, node, number, word }, /** @type {State} */ state, /** @type {Card} */ card, d, n) {
  const { depths, rates, verdicts, signs, best: star, over } = state,
    loss = card.loss[d][n],
    kind = card.verdict[d][n],
    best = card.best[d] === n,
    chosen = state.depth === d && state.rate === n;
  cell.className = kind === 2 ? "masked" : "shade";
  cell.style.setProperty("--w", share(loss, state).toFixed(3));
  number.textContent = [best ? star : signs[kind], loss === null ? "" : say(loss)].filter(Boolean).join(" ");
  word.textContent = kind ? verdicts[kind] : best ? "best" : "";
  number.style.fontWeight = best ? 700 : 400;
  place(node, {
    "aria-pressed": chosen,
    "data-verdict": verdicts[kind],
    "aria-label":
      `${number.textContent} ${word.textContent}, ${blocks(depths[d])}, rate ${rates[n]}: ` +
      `${verdicts[kind]}${loss === null ? "" : `, loss ${say(loss)}`}${best ? ", best rate of this depth" : ""}`,
  });
  node.style.boxShadow = chosen
    ? "inset 0 0 0 3px var(--orange)"
    : over?.[0] === d && over?.[1] === n
      ? "inset 0 0 0 2px currentColor"
      : "none";
}

// The losses over the steps, on the same axes for all, so that curves can be compared; what is higher stands at the
// top edge.
function curves(/** @type {Element} */ panels, /** @type {State} */ state) {
  const { steps, every, unigram, uniform, depths, rates, low, high } = state;
  const figure = add(panels, "figure"),
    title = add(figure, "div", { style: "font-weight: 600" }),
    label = "losses over the steps of the chosen cell";
  const { svg } = panel(figure, { width: WIDE, height: HIGH, x: [0, 1], y: [0, 1], label });
  const caption = add(figure, "figcaption");
  const x = (/** @type {number} */ step) => LEFT + (step / steps) * (WIDE - LEFT - RIGHT);
  const y = (/** @type {number} */ loss) =>
    TOP + ((high - Math.min(high, Math.max(low, loss))) / (high - low)) * (HIGH - TOP - BOTTOM);
  for (let v = Math.ceil(low); v <= high; v += Math.ceil((high - low) / 6)) {
    draw(svg, "path", { d: `M${LEFT} ${y(v)}H${WIDE - RIGHT}`, stroke: "currentColor", opacity: 0.12 });
    draw(svg, "text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, v);
  }
  const below = HIGH - BOTTOM + 16;
  draw(svg, "text", { x: x(0), y: below, "text-anchor": "start" }, 0);
  draw(svg, "text", { x: x(steps), y: below, "text-anchor": "end" }, steps);
  draw(svg, "text", { x: x(steps / 2), y: HIGH - 12, "text-anchor": "middle" }, "step");
  const baseline = (/** @type {number} */ loss, text, away, dash) => {
    draw(svg, "path", { d: `M${LEFT} ${y(loss)}H${WIDE - RIGHT}`, stroke: "currentColor", "stroke-dasharray": dash });
    draw(svg, "text", { x: WIDE - RIGHT - 8, y: y(loss) + away, "text-anchor": "end" }, `${text}: ${say(loss)}`);
  };
  baseline(uniform, "all characters alike", -5, "2 4");
  baseline(unigram, "character frequencies", 25, "6 3"); // below the curves of those that are stuck there
  const lines = draw(svg, "g");

  function curve(/** @type {Card} */ card, d, n, /** @type {number} */ which) {
    const losses = card.curves[d][n],
      made = card.steps[d][n],
      end = card.loss[d][n],
      paint = `var(${COLOURS[which]})`;
    const points = middles(losses.length, every, made).map((step, i) => ({ px: x(step), py: y(losses[i]) }));
    const group = draw(lines, "g", { "data-recipe": card.name, "data-points": points.length });
    const solid = { fill: "none", stroke: paint, "stroke-width": 2 };
    const dashed = which ? { "stroke-dasharray": "6 3" } : {};
    if (points.length)
      draw(group, "path", {
        d: "M" + points.map(({ px, py }) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L"),
        ...solid,
        ...dashed,
      });
    const above = (px, py) =>
      draw(group, "path", { d: `M${px - 5} ${py + 5}L${px} ${py - 4}L${px + 5} ${py + 5}Z`, fill: paint });
    points.forEach(({ px, py }, i) => {
      if (losses[i] > high) above(px, py);
      else draw(group, "circle", { cx: px, cy: py, r: 2.5, fill: paint });
    });
    if (end === null) {
      const d = `M${x(made) - 6} ${(points.at(-1)?.py ?? TOP) - 6}l12 12m0 -12l-12 12`;
      draw(group, "path", { d, stroke: paint, "stroke-width": 3, "data-broken": made });
    } else if (end > high) above(x(steps), y(end));
    else {
      const d = `M${x(steps)} ${y(end) - 7}l7 7l-7 7l-7 -7Z`;
      draw(group, "path", { d, ...solid, fill: which ? "none" : paint, "data-end": "" });
    }
  }

  return (/** @type {Card[]} */ cards, /** @type {number} */ d, /** @type {number} */ n) => {
    title.textContent = `${blocks(depths[d])}, learning rate ${rates[n]}`;
    lines.replaceChildren();
    for (const [which, card] of cards.entries()) curve(card, d, n, which);
    const top = highest(cards, d, n);
    caption.textContent =
      `Loss in nats a character.` +
      `${cards.length > 1 ? ` Blue: ${cards[0].name}. Orange, dashed: ${cards[1].name}.` : ""}` +
      `${top > high ? ` ▲: above the axis, up to ${say(top)}.` : ""}`;
  };
}

// What colours and signs mean.
function legend(/** @type {Element} */ el, /** @type {State} */ state) {
  const { every, seeds, signs, best, unigram, least } = state,
    key = add(fold(el, "what colours and signs mean"), "div", { class: "d2lmini-key" });
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
    `${best} best: the lowest loss of those of a depth that train. ` +
      `${signs[1]} stuck: hardly better than the character frequencies alone, or worse. ${signs[2]} diverged: ` +
      `worse than at the start and than an even guess, or not finite. Of the curves: dots are means of ` +
      `${every === 1 ? "one step" : `${every} steps`} of the training, the diamond is the end on the validation ` +
      `text, ✕ the last step before numbers are not finite.` +
      (seeds > 1 ? ` Of ${seeds} seeds the first is shown.` : ""),
  );
}

function tell(/** @type {State} */ { steps, seeds, unigram, uniform }, /** @type {Card} */ card, d, n) {
  const loss = card.loss[d][n],
    made = card.steps[d][n],
    off = loss === null ? 0 : loss - unigram,
    far = Math.abs(off) < 0.005 ? "just" : `${say(Math.abs(off))} ${off < 0 ? "below" : "above"}`,
    against = `After ${steps} steps its loss is ${say(loss ?? 0)}, ${far} that of the character frequencies.`;
  const diverged =
    loss !== null
      ? `After ${steps} steps its loss is ${say(loss)}, worse than at the first step and than ` +
        `${say(uniform)}, that of all characters alike.`
      : made < steps
        ? `In step ${made + 1} of ${steps} its loss or its gradient is not finite.`
        : `After ${steps} steps its loss on the validation text is not finite.`;
  const found = [
    `it trains. ${against}${card.best[d] === n ? " No other rate does better at this depth." : ""}`,
    `it is stuck. ${against}`,
    `it diverged. ${diverged}`,
  ][card.verdict[d][n]];
  return `${card.name}: ${found}${seeds > 1 ? ` With ${card.agree[d][n]} of ${seeds} seeds it trains.` : ""}`;
}

function render({ model, el }) {
  const given = Object.fromEntries([...GIVEN, ...MORE].map((key) => [key, model.get(key)])),
    state = /** @type {State} */ ({ ...given, over: null }),
    { recipes } = Object.assign(state, bounds(state));
  const change = (changes) => {
    keepAll(model, state, changes);
    paint();
  };
  const names = Object.fromEntries(recipes.map(({ name }) => [name, name]));
  const controls = add(el, "div", { class: "d2lmini-controls" });
  choice(controls, { label: "recipe", options: names, value: state.recipe }, (recipe) => change({ recipe }));
  const others = { label: "beside it", options: { "": "nothing", ...names }, value: state.other };
  if (recipes.length > 1) choice(controls, others, (other) => change({ other }));

  const boxes = views(el, "map", ["recipe", "beside it"]);
  const look = (/** @type {number[] | null} */ cell) => {
    state.over = cell;
    paint();
  };
  const choose = (depth, rate) => {
    state.over = null;
    change({ depth, rate });
  };
  const painters = COLOURS.map((colour, i) => map(boxes[i], colour, state, { look, choose }));
  const panels = add(el, "div", { class: "d2lmini-panels" }),
    paintCurves = curves(panels, state);
  const note = add(panels, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 2.8em" });
  legend(el, state);

  function paint() {
    const named = new Set([state.recipe, state.other]), // a recipe is not compared with itself
      cards = [...named].flatMap((name) => recipes.filter((card) => card.name === name)),
      [d, n] = state.over ?? [state.depth, state.rate];
    boxes.row.style.display = cards.length > 1 ? "" : "none";
    if (cards.length === 1) boxes.show(0);
    for (const [i, painter] of painters.entries()) painter(cards[i]);
    paintCurves(cards, d, n);
    note.replaceChildren();
    for (const card of cards) add(note, "div", {}, tell(state, card, d, n));
  }
  paint();
}

export default { render };
