// Speculative decoding of characters: a draft proposes, a target accepts or replaces, one decision at a time.
import { add, button, draw, keep, panel, place, slider, unpack, views } from "./base/index.js";
import { randomNumbers } from "./live/filters.js";
import { distributions, overlap, pass, passes } from "./numbers/draft_verify.js";

/**
 * `passes`: how many have begun, `pass` the last of them, of which `at` steps are shown; `counts` of the first
 * characters of `tries` repetitions, which draw from `random` of their own, so that they do not change the walk.
 * @typedef {import("./numbers/draft_verify.js").Step} Step
 * @typedef {import("./numbers/draft_verify.js").Pass & { text: number[] }} Pass
 * @typedef {{ names: string[], models: import("./numbers/draft_verify.js").Models, prompt: number[], n: number,
 *   seed: number, passes: number, pass: Pass, at: number, counts: number[], tries: number, random: () => number }} State
 */

const MOST = 8,
  WIDTH = 340,
  LEFT = 8,
  TALL = 150,
  TRIES = 500;

const shownStep = (/** @type {State} */ { pass: { steps }, at }) => steps[at - 1],
  over = (/** @type {State} */ { pass: { steps }, at }) => at === steps.length,
  scale = (share) => LEFT + share * (WIDTH - 2 * LEFT);
const plot = (parent, height, label) => panel(parent, { width: WIDTH, height, x: [0, 1], y: [0, 1], label });

// For each character its name below rectangles, one of each kind: the share of the column it takes, and attributes.
function columns(svg, names, ...kinds) {
  const wide = (WIDTH - 2 * LEFT) / names.length;
  return names.map((name, x) => {
    const made = kinds.map(([share, attributes]) =>
      draw(svg, "rect", { x: LEFT + (x + (1 - share) / 2) * wide, width: share * wide, ...attributes }),
    );
    draw(svg, "text", { x: LEFT + (x + 0.5) * wide, y: TALL + 16, "text-anchor": "middle" }, name);
    return made;
  });
}

const tall = (node, height) => place(node, { y: TALL - height, height });

// p and q at the place of a step.
function shares(box, /** @type {State} */ { names }) {
  const { svg } = plot(box, TALL + 22, "the distributions of target and draft at this position");
  const bars = columns(
    svg,
    names,
    [1, { y: 0, height: TALL + 22, fill: "currentColor", "fill-opacity": 0.15 }],
    [0.78, { fill: "var(--blue)", "fill-opacity": 0.75 }],
    [0.4, { fill: "var(--orange)" }],
  );
  return (/** @type {Step} */ { kind, p, q, x }) => {
    const top = Math.max(...p, ...q),
      height = (share) => (share / top) * (TALL - 8);
    bars.forEach(([chosen, blue, orange], i) => {
      chosen.style.display = i === x ? "" : "none";
      tall(blue, height(kind === "replace" ? Math.max(p[i] - q[i], 0) : p[i])); // the place of a rejected one
      tall(orange, height(q[i]));
      place(orange, { "fill-opacity": kind === "replace" || kind === "add" ? 0.25 : 1 });
      place(blue, { "fill-opacity": kind === "draft" ? 0.25 : 0.75 });
    });
  };
}

// The random number of a step on a line from 0 to 1, and what parts of it stand for.
function line(box, /** @type {State} */ { names }) {
  const { svg } = plot(box, 62, "the random number on a line from 0 to 1");
  svg.style.marginTop = "6px";
  const segments = draw(svg, "g"),
    needle = draw(svg, "path", { stroke: "currentColor", "stroke-width": 2 }),
    said = draw(svg, "text", { y: 56 });
  const part = (low, high, fill, opacity, name = "") => {
    const width = Math.max(0, scale(high) - scale(low));
    const look = { fill, "fill-opacity": opacity, stroke: "currentColor", "stroke-opacity": 0.4 };
    draw(segments, "rect", { x: scale(low), y: 14, width, height: 24, ...look });
    if (width > 12) draw(segments, "text", { x: (scale(low) + scale(high)) / 2, y: 31, "text-anchor": "middle" }, name);
  };
  return (/** @type {Step} */ { kind, u, x, from, limit = 1 }) => {
    segments.replaceChildren();
    if (from) {
      let sum = 0;
      from.forEach((share, i) => {
        if (share > 0)
          part(sum, sum + share, kind === "draft" ? "var(--orange)" : "var(--blue)", i === x ? 0.6 : 0.12, names[i]);
        sum += share;
      });
    } else {
      part(0, limit, "var(--blue)", 0.35, limit > 0.2 ? "accept" : "");
      if (limit < 1) part(limit, 1, "#888", 0.15, limit < 0.8 ? "reject" : "");
    }
    place(needle, { d: `M${scale(u)} 6V44` });
    said.textContent = `u = ${u.toFixed(3)}`;
    place(said, { x: Math.min(270, Math.max(LEFT, scale(u) - 30)) });
  };
}

// What repeated passes write first, beside p and q; `repeat` makes more of them.
function repetitions(box, /** @type {State} */ state, repeat) {
  const { svg } = plot(box, TALL + 22, "the first characters of repeated passes, beside p and q");
  const bars = columns(
    svg,
    state.names,
    [0.9, { fill: "var(--blue)", "fill-opacity": 0.6 }],
    [0.9, { fill: "none", stroke: "currentColor" }],
    [0.9, { height: 2.4, fill: "var(--orange)" }],
  );
  const words =
    "the first character that a pass writes after this text, over all repetitions: filled; p: hollow; q: orange marks";
  add(box, "figcaption", {}, words);
  const repeating = add(box, "div", { class: "d2lmini-controls", style: "margin: 6px 0" });
  button(repeating, `${TRIES} passes from this text`, repeat);
  const tally = add(box, "div", { class: "d2lmini-tally", "aria-live": "polite", style: "min-height: 3em" });

  return () => {
    const { models, prompt, passes: begun, pass: now, counts, tries } = state,
      { p, q } = distributions(models, now.text),
      found = counts.map((count) => count / (tries || 1));
    const most = Math.max(...p, ...q, ...found),
      height = (share) => (share / most) * (TALL - 8);
    bars.forEach(([full, outline, mark], i) => {
      tall(full, height(found[i]));
      tall(outline, height(p[i]));
      place(mark, { y: TALL - height(q[i]) - 1.2 });
    });
    const written = now.text.length - prompt.length + (over(state) ? now.written.length : 0),
      whole = begun - (over(state) ? 0 : 1);
    tally.textContent =
      `Passes of the target: ${whole}, characters written: ${written}` +
      (whole ? `, ${(written / whole).toFixed(2)} a pass. ` : ". ") +
      `The first proposal after this text is accepted with the probability ${overlap({ p, q }).toFixed(2)}, what p ` +
      `and q have in common. Repetitions: ${tries}.`;
    place(tally, { "data-counts": counts.join(" ") });
  };
}

// The text as far as it is written, and what is proposed for it.
function paintText(box, /** @type {State} */ state) {
  const { names, n, pass: now } = state,
    { kind, i, x } = shownStep(state);
  box.replaceChildren();
  const say = (tokens, style, title) => {
    if (tokens.length) add(box, "span", { style, "data-kind": title }, tokens.map((token) => names[token]).join(""));
  };
  const checking = kind !== "draft",
    accepted = checking ? i + (kind === "accept" ? 1 : 0) : 0;
  say(now.text, "", "before");
  say(now.drafted.slice(0, accepted), "color: var(--blue); font-weight: 700", "accepted");
  if (over(state)) say([x], "color: var(--orange); font-weight: 700; text-decoration: underline", "last");
  const lost = kind === "reject" || kind === "replace",
    look = lost ? "text-decoration: line-through; opacity: 0.75" : "font-style: italic; opacity: 0.85";
  const from = kind === "replace" ? accepted + 1 : accepted;
  if (kind !== "add") say(now.drafted.slice(from, checking ? n : i + 1), look, "proposed");
}

function tell(/** @type {State} */ state) {
  const { names, n } = state,
    { kind, i, u, x, p, q, limit = 1 } = shownStep(state);
  const name = `“${names[x]}”`,
    number = u.toFixed(3);
  if (kind === "draft")
    return `The draft proposes character ${i + 1} of ${n}: u = ${number} draws ${name} from q. The target waits.`;
  if (kind === "replace")
    return `u = ${number} draws ${name} from max(p − q, 0), scaled. It takes the place, and the pass ends.`;
  if (kind === "add") return `All ${n} are accepted, and the target adds one from p: u = ${number} draws ${name}.`;
  const ratio = `p / q = ${p[x].toFixed(3)} / ${q[x].toFixed(3)} = ${(p[x] / q[x]).toFixed(2)}`;
  const what = kind === "accept" ? `below ${limit.toFixed(3)}, so it is accepted` : "not below it, so it is rejected";
  const first = i ? "" : "One pass of the target gives p at all places. ";
  return `${first}${name} has ${ratio}; u = ${number} is ${what}.`;
}

const begun = ({ models, prompt, n, seed }, count) => ({
  passes: count,
  pass: passes(models, prompt, n, seed, count)[count - 1],
  at: 1,
  counts: /** @type {number[]} */ (Array(models.V).fill(0)),
  tries: 0,
});
const started = (settings) => ({ ...begun(settings, 1), random: randomNumbers(settings.seed + 0x9e3779b9) });

function render({ model, el }) {
  const symbols = [...model.get("symbols")],
    [target, draft] = ["target", "draft"].map((key) => unpack(model.get(key)));
  const settings = {
    names: symbols.map((symbol) => (symbol === " " ? "␣" : symbol)),
    models: { V: symbols.length, target, draft },
    prompt: [...model.get("prompt")].map((symbol) => symbols.indexOf(symbol)),
    n: model.get("n"),
    seed: model.get("seed"),
  };
  /** @type {State} */
  const state = { ...settings, ...started(settings) };
  const begin = () => Object.assign(state, begun(state, state.passes + 1));
  const acting = (/** @type {() => void} */ act) => () => {
    act();
    paint();
  };
  const set = (key, value) => {
    state[key] = value;
    keep(model, key, value);
    Object.assign(state, started(state));
    paint();
  };

  const controls = add(el, "div", { class: "d2lmini-controls" }),
    drafted = { label: "drafted a pass", min: 1, max: MOST, step: 1, value: state.n, digits: 0 };
  slider(controls, drafted, (n) => set("n", n));
  const buttons = add(el, "div", { class: "d2lmini-controls" });
  const step = () => {
    if (over(state)) begin();
    else state.at += 1;
  };
  const toTheEnd = () => {
    if (over(state)) begin();
    state.at = state.pass.steps.length;
  };
  button(buttons, "next step →", acting(step));
  button(buttons, "next pass", acting(toTheEnd));
  button(buttons, "again, with other numbers", () => set("seed", state.seed + 1));
  const text = add(el, "p", { style: "margin: 0 0 8px; font-family: monospace; min-height: 3.2em; font-size: 1rem" });
  text.className = "d2lmini-text";
  const high = "min-height: 4.4em; margin-bottom: 6px",
    note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: high });

  const [left, right] = views(el, "view", ["one pass", "repeated passes"]);
  const paintShares = shares(left, state),
    paintLine = line(left, state);
  const legend =
    "blue: the target's p, after a rejection max(p − q, 0); narrow, orange: the draft's q; below: the random number u";
  add(left, "figcaption", {}, legend);
  const repeat = () => {
    const { models, n, pass: now, random, counts } = state;
    for (let i = 0; i < TRIES; i++) counts[pass(models, now.text, n, random).written[0]] += 1;
    state.tries += TRIES;
  };
  const paintRepetitions = repetitions(right, state, acting(repeat));

  function paint() {
    paintShares(shownStep(state));
    paintLine(shownStep(state));
    note.textContent = tell(state);
    paintText(text, state);
    paintRepetitions();
  }
  paint();
}

export default { render };
