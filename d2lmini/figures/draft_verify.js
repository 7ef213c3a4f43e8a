// Speculative decoding of characters: a draft proposes, a target accepts or replaces, one decision at a time.
import { add, button, draw, keep, panel, place, slider, unpack, views } from "./base/index.js";

const MOST = 8,
  LEFT = 8,
  TALL = 150,
  TRIES = 500;

// A generator of numbers from 0 to 1 that a seed determines (mulberry32).
const generator = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
const scaled = (numbers) => {
  const sum = numbers.reduce((a, b) => a + b, 0);
  return numbers.map((number) => number / sum);
};

function render({ model, el }) {
  const symbols = [...model.get("symbols")],
    V = symbols.length,
    target = unpack(model.get("target")),
    draft = unpack(model.get("draft")),
    prompt = [...model.get("prompt")].map((c) => symbols.indexOf(c));
  const now = { n: model.get("n"), seed: model.get("seed") };
  const shown = (x) => (symbols[x] === " " ? "␣" : symbols[x]);
  const row = (counts, at) => scaled(Array.from(counts.subarray(at * V, (at + 1) * V)));
  const says = (text) => ({
    p: row(target, text.at(-2) * V + text.at(-1)),
    q: row(draft, text.at(-1)),
  });
  const rest = (p, q) => scaled(p.map((share, x) => Math.max(share - q[x], 0)));
  function pick(shares, u) {
    let sum = 0;
    for (let x = 0; x < V; x++) {
      sum += shares[x];
      if (sum > u) return x;
    }
    return shares.findLastIndex((share) => share > 0);
  }

  // A pass after a text, as a list of decisions: each with p, q and what happens.
  function pass(text, n, random) {
    const steps = [],
      drafted = [];
    for (let i = 0; i < n; i++) {
      const both = says([...text, ...drafted]),
        u = random(),
        x = pick(both.q, u);
      drafted.push(x);
      steps.push({ kind: "draft", i, ...both, from: both.q, u, x });
    }
    for (let i = 0; i < n; i++) {
      const both = steps[i],
        { p, q, x } = both,
        u = random(),
        accepted = u < p[x] / q[x];
      steps.push({ kind: accepted ? "accept" : "reject", i, p, q, u, x, limit: Math.min(1, p[x] / q[x]) });
      if (accepted) continue;
      const from = rest(p, q),
        v = random();
      steps.push({ kind: "replace", i, p, q, from, u: v, x: pick(from, v) });
      return { steps, drafted, written: [...drafted.slice(0, i), steps.at(-1).x] };
    }
    const both = says([...text, ...drafted]),
      u = random();
    steps.push({ kind: "add", i: n, ...both, from: both.p, u, x: pick(both.p, u) });
    return { steps, drafted, written: [...drafted, steps.at(-1).x] };
  }

  const controls = add(el, "div", { class: "d2lmini-controls" });
  slider(controls, { label: "drafted a pass", min: 1, max: MOST, step: 1, value: now.n, digits: 0 }, (n) => {
    now.n = n;
    keep(model, "n", n);
    start();
  });
  const acting = add(el, "div", { class: "d2lmini-controls" });
  button(acting, "next step →", step);
  button(acting, "next pass", () => {
    if (at < current.steps.length) at = current.steps.length;
    else {
      begin();
      at = current.steps.length;
    }
    paint();
  });
  button(acting, "again, with other numbers", () => {
    now.seed += 1;
    keep(model, "seed", now.seed);
    start();
  });
  const text = add(el, "p", { style: "margin: 0 0 8px; font-family: monospace; min-height: 3.2em; font-size: 1rem" });
  text.className = "d2lmini-text";
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 4.4em; margin-bottom: 6px",
  });

  const [left, right] = views(el, "view", ["one pass", "repeated passes"]),
    wide = (340 - 2 * LEFT) / V;
  const make = (parent, height, label) => panel(parent, { width: 340, height, x: [0, 1], y: [0, 1], label });
  const main = make(left, TALL + 22, "the distributions of target and draft at this position");
  const line = make(left, 62, "the random number on a line from 0 to 1");
  line.svg.style.marginTop = "6px";
  const columns = (svg, ...kinds) =>
    symbols.map((_, x) => {
      const of = (share, attributes) =>
        draw(svg, "rect", { x: LEFT + (x + (1 - share) / 2) * wide, width: share * wide, ...attributes });
      const made = kinds.map(([share, attributes]) => of(share, attributes));
      draw(svg, "text", { x: LEFT + (x + 0.5) * wide, y: TALL + 16, "text-anchor": "middle" }, shown(x));
      return made;
    });
  const hollow = { fill: "none", stroke: "currentColor" };
  const bars = columns(
    main.svg,
    [1, { y: 0, height: TALL + 22, fill: "currentColor", "fill-opacity": 0.15 }],
    [0.78, { fill: "var(--blue)", "fill-opacity": 0.75 }],
    [0.4, { fill: "var(--orange)" }],
  );
  const segments = draw(line.svg, "g"),
    needle = draw(line.svg, "path", { stroke: "currentColor", "stroke-width": 2 }),
    said = draw(line.svg, "text", { y: 56 });
  add(
    left,
    "figcaption",
    {},
    "blue: the target's p, after a rejection max(p − q, 0); narrow, orange: the draft's q; below: the random number u",
  );

  const tries = make(right, TALL + 22, "the first characters of repeated passes, beside p and q");
  const seen = columns(
    tries.svg,
    [0.9, { fill: "var(--blue)", "fill-opacity": 0.6 }],
    [0.9, hollow],
    [0.9, { height: 2.4, fill: "var(--orange)" }],
  );
  add(
    right,
    "figcaption",
    {},
    "the first character that a pass writes after this text, over all repetitions: filled; p: hollow; q: orange marks",
  );
  const repeating = add(right, "div", { class: "d2lmini-controls", style: "margin: 6px 0" });
  button(repeating, `${TRIES} passes from this text`, repeat);
  const tally = add(right, "div", { class: "d2lmini-tally", "aria-live": "polite", style: "min-height: 3em" });

  let random, written, current, at, passes, counts, total, other;
  function start() {
    random = generator(now.seed);
    other = generator(now.seed + 0x9e3779b9); // of the repetitions, so that they do not change the walk
    written = [...prompt];
    passes = 0;
    current = null;
    begin();
    paint();
  }
  function begin() {
    if (current) written.push(...current.written);
    current = pass(written, now.n, random);
    at = 1;
    passes += 1;
    counts = Array(V).fill(0);
    total = 0;
  }
  function step() {
    if (at < current.steps.length) at += 1;
    else begin();
    paint();
  }
  function repeat() {
    for (let i = 0; i < TRIES; i++) counts[pass(written, now.n, other).written[0]] += 1;
    total += TRIES;
    paint();
  }

  function tell({ kind, i, u, x, p, q, limit }) {
    const name = `“${shown(x)}”`,
      number = u.toFixed(3);
    if (kind === "draft")
      return `The draft proposes character ${i + 1} of ${now.n}: u = ${number} draws ${name} from q. The target waits.`;
    if (kind === "replace")
      return `u = ${number} draws ${name} from max(p − q, 0), scaled. It takes the place, and the pass ends.`;
    if (kind === "add")
      return `All ${now.n} are accepted, and the target adds one from p: u = ${number} draws ${name}.`;
    const ratio = `p / q = ${p[x].toFixed(3)} / ${q[x].toFixed(3)} = ${(p[x] / q[x]).toFixed(2)}`;
    const what = kind === "accept" ? `below ${limit.toFixed(3)}, so it is accepted` : "not below it, so it is rejected";
    const first = i ? "" : "One pass of the target gives p at all places. ";
    return `${first}${name} has ${ratio}; u = ${number} is ${what}.`;
  }

  function paintText() {
    const done = at === current.steps.length,
      state = current.steps[at - 1];
    text.replaceChildren();
    const say = (tokens, style, title) => {
      if (tokens.length) add(text, "span", { style, "data-kind": title }, tokens.map(shown).join(""));
    };
    const [blue, orange] = ["color: var(--blue)", "color: var(--orange)"];
    say(written, "", "before");
    const checking = state.kind !== "draft";
    const accepted = checking ? state.i + (state.kind === "accept" ? 1 : 0) : 0;
    say(current.drafted.slice(0, accepted), `${blue}; font-weight: 700`, "accepted");
    if (done) say([state.x], `${orange}; font-weight: 700; text-decoration: underline`, "last");
    const ahead = checking ? now.n : state.i + 1,
      lost = state.kind === "reject" || state.kind === "replace";
    const look = lost ? "text-decoration: line-through; opacity: 0.75" : "font-style: italic; opacity: 0.85";
    const from = state.kind === "replace" || state.kind === "add" ? accepted + 1 : accepted;
    if (state.kind !== "add") say(current.drafted.slice(from, ahead), look, "proposed");
  }

  function paint() {
    const state = current.steps[at - 1],
      { kind, p, q, u, x, from } = state,
      top = Math.max(...p, ...q);
    bars.forEach(([chosen, blue, orange], i) => {
      const put = (node, share) =>
        place(node, { y: TALL - (share / top) * (TALL - 8), height: (share / top) * (TALL - 8) });
      chosen.style.display = i === x ? "" : "none";
      put(blue, kind === "replace" ? Math.max(p[i] - q[i], 0) : p[i]); // the place of a rejected one
      put(orange, q[i]);
      place(orange, { "fill-opacity": kind === "replace" || kind === "add" ? 0.25 : 1 });
      place(blue, { "fill-opacity": kind === "draft" ? 0.25 : 0.75 });
    });

    segments.replaceChildren();
    const scale = (share) => LEFT + share * (340 - 2 * LEFT);
    const part = (low, high, fill, opacity, name = "") => {
      const width = Math.max(0, scale(high) - scale(low));
      const look = { fill, "fill-opacity": opacity, stroke: "currentColor", "stroke-opacity": 0.4 };
      draw(segments, "rect", { x: scale(low), y: 14, width, height: 24, ...look });
      if (width > 12)
        draw(segments, "text", { x: (scale(low) + scale(high)) / 2, y: 31, "text-anchor": "middle" }, name);
    };
    if (from) {
      let sum = 0;
      from.forEach((share, i) => {
        if (share > 0)
          part(sum, sum + share, kind === "draft" ? "var(--orange)" : "var(--blue)", i === x ? 0.6 : 0.12, shown(i));
        sum += share;
      });
    } else {
      part(0, state.limit, "var(--blue)", 0.35, state.limit > 0.2 ? "accept" : "");
      if (state.limit < 1) part(state.limit, 1, "#888", 0.15, state.limit < 0.8 ? "reject" : "");
    }
    place(needle, { d: `M${scale(u)} 6V44` });
    said.textContent = `u = ${u.toFixed(3)}`;
    place(said, { x: Math.min(270, Math.max(LEFT, scale(u) - 30)) });

    note.textContent = tell(state);
    paintText();
    const here = says(written),
      most = Math.max(...here.p, ...here.q, ...counts.map((count) => count / (total || 1)));
    seen.forEach(([full, outline, tick], i) => {
      const height = (share) => (share / most) * (TALL - 8);
      const found = total ? height(counts[i] / total) : 0;
      place(full, { y: TALL - found, height: found });
      place(outline, { y: TALL - height(here.p[i]), height: height(here.p[i]) });
      place(tick, { y: TALL - height(here.q[i]) - 1.2 });
    });
    const done = at === current.steps.length,
      tokens = written.length - prompt.length + (done ? current.written.length : 0),
      whole = passes - (done ? 0 : 1);
    const share = here.p.reduce((sum, mass, i) => sum + Math.min(mass, here.q[i]), 0);
    tally.textContent =
      `Passes of the target: ${whole}, characters written: ${tokens}` +
      (whole ? `, ${(tokens / whole).toFixed(2)} a pass. ` : ". ") +
      `The first proposal after this text is accepted with the probability ${share.toFixed(2)}, what p and q have in ` +
      `common. Repetitions: ${total}.`;
    place(tally, { "data-counts": counts.join(" ") });
  }
  start();
}

export default { render };
