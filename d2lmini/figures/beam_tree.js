// A beam search as a tree: a column for each step, ranked, from the start on the left.
import { add, choice, draw, keep, panel, place, rove, scroller, stepper } from "./base/index.js";
import { beginnings, find, gains, parting, path, spelled, tokensAt } from "./numbers/beam_tree.js";

/**
 * @typedef {import("./numbers/beam_tree.js").Place} Place
 * @typedef {import("./numbers/beam_tree.js").Search} Search
 * @typedef {{ searches: Record<string, Search>, start: string, over: string, beam_size: string, step: number,
 *   pointed: Place | null }} State
 */

const WIDE = 92,
  PITCH = 104, // from column to column: the root and six of them fill the book's column next to a classic scrollbar
  ROOT = 48,
  HIGH = 32,
  TOP = 24;

const x = (t) => (t ? 6 + ROOT + 16 + (t - 1) * PITCH : 6),
  y = (i) => TOP + i * HIGH + 15,
  wide = (t) => (t ? WIDE : ROOT);
const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−"),
  bare = (word) => word.replace(/^▁(?=.)/, ""),
  key = ([t, i]) => `${t} ${i}`;

const shown = (/** @type {State} */ { searches, beam_size }) => searches[beam_size];
const over = (/** @type {State} */ state) => state.step === shown(state).columns.length;

// What is orange: the sequence that is pointed at, else at the end the best one.
function lit(/** @type {State} */ state) {
  const { columns, best } = shown(state);
  if (state.pointed) return path(columns, state.pointed);
  return over(state) ? find(columns, best) : [];
}

// A place of the tree, and the edge to its parent.
function drawNode(svg, edges, { t, i, parent = 0, word, total = 0, fate, root = "", dotted = false }) {
  const kept = fate !== "pruned",
    letters = [...bare(word)];
  const short = letters.length > 6 ? letters.slice(0, 5).join("") + "…" : letters.join("");
  const group = draw(svg, "g", {
    role: "button",
    style: "cursor: pointer",
    "data-fate": fate,
    "aria-label": t
      ? `${short} ${number(total, 1)}, token ${t}, rank ${i + 1}: ${bare(word)}, ${number(total)}, ${fate}`
      : `start, ${word}`,
  });
  const around = { x: x(t), y: y(i) - 13, width: wide(t), height: 26, rx: 5, "stroke-width": kept ? 2 : 1 },
    frame = draw(group, "rect", around);
  const within = { x: x(t) + 3, y: y(i) - 10, width: WIDE - 6, height: 20, rx: 3 };
  if (fate === "ended") draw(group, "rect", { ...within, fill: "none", stroke: "currentColor" });
  if (!kept) place(group, { "fill-opacity": 0.75, "stroke-opacity": 0.4 });
  draw(group, "text", { x: x(t) + 5, y: y(i) + 4 }, t ? short : root);
  group.append(" ");
  if (t) draw(group, "text", { x: x(t) + WIDE - 5, y: y(i) + 4, "text-anchor": "end" }, number(total, 1));
  if (dotted) draw(group, "circle", { cx: x(t) + wide(t) - 2, cy: y(i) - 11, r: 4, fill: "var(--blue)" });
  if (!t) return { t, i, parent, group, frame, kept };
  const [from, to] = [y(parent), y(i)];
  const d = `M${x(t - 1) + wide(t - 1)} ${from}C${x(t) - 4} ${from} ${x(t) - 12} ${to} ${x(t)} ${to}`;
  return { t, i, parent, group, frame, kept, edge: draw(edges, "path", { d }) };
}

// The tree up to the step of `state`; `pointed()` follows a change of what is pointed at. Returns: a function that
// lights the given places.
function tree(hold, /** @type {State} */ state, pointed) {
  const { columns } = shown(state),
    rows = Math.max(...columns.map((column) => column.length));
  const [width, height] = [x(columns.length) + WIDE + 6, TOP + rows * HIGH + 8];
  hold.replaceChildren();
  const { svg } = panel(hold, {
    width,
    height,
    x: [0, width],
    y: [height, 0],
    label: "the tree, a column for each step",
  });
  svg.style.minWidth = `${width}px`;
  const greedy = state.searches["1"]?.best ?? [],
    taken = new Set(beginnings(columns, greedy).map(key));
  const last = state.start.split(" ").at(-1) ?? "",
    root = last === state.start ? [...last].slice(0, 6).join("") : `…${[...last].slice(-5).join("")}`;
  const edges = draw(svg, "g", { fill: "none" });
  const nodes = [drawNode(svg, edges, { t: 0, i: 0, word: state.start, fate: "kept", root })];
  for (let t = 1; t <= state.step; t++) {
    draw(svg, "text", { x: x(t) + WIDE / 2, y: 14, "text-anchor": "middle", opacity: 0.8 }, `token ${t}`);
    columns[t - 1].forEach(([parent, word, total, fate], i) => {
      const one = { t, i, parent: Math.max(0, parent), word, total, fate, dotted: taken.has(key([t, i])) };
      nodes.push(drawNode(svg, edges, one));
    });
  }

  const point = (at) => {
    state.pointed = at;
    pointed();
  };
  for (const { t, i, group } of nodes) {
    for (const kind of ["pointerenter", "focus"]) group.addEventListener(kind, () => point([t, i]));
    group.addEventListener("click", () => group.focus());
  }
  svg.addEventListener("pointerleave", () => point(null));
  const groups = nodes.map(({ group }) => group);
  rove(groups, {
    to(n, down, right) {
      const { t, i, parent } = nodes[n],
        at = (u, j) => nodes.findIndex((other) => other.t === u && other.i === j);
      if (!right) return at(t, i + down);
      if (right < 0) return at(t - 1, parent);
      const child = nodes.findIndex((other) => other.t === t + 1 && other.parent === i);
      return child < 0 ? at(t + 1, Math.min(i, rows)) : child;
    },
  });

  return (places) => {
    const lights = new Set(places.length ? [[0, 0], ...places].map(key) : []);
    for (const { t, i, group, frame, edge, kept } of nodes) {
      const on = lights.has(key([t, i])),
        color = on ? "var(--orange)" : "currentColor";
      place(group, { "aria-pressed": on });
      place(frame, { stroke: color, fill: color, "fill-opacity": on ? 0.2 : kept ? 0.06 : 0 });
      if (edge) place(edge, { stroke: color, "stroke-width": on ? 3 : kept ? 2 : 1, opacity: on || kept ? 1 : 0.3 });
    }
  };
}

function say(/** @type {State} */ state) {
  const { columns, best, score } = shown(state),
    { pointed, step, beam_size } = state;
  if (pointed?.[0]) {
    const [t, i] = pointed,
      places = path(columns, pointed),
      [, , total, fate] = columns[t - 1][i];
    const sum = gains(columns, places)
      .map((gain) => (gain < 0 ? number(gain) : "−" + number(gain)))
      .join(" ")
      .replaceAll(" −", " − ");
    const text = spelled(tokensAt(columns, places));
    return `“${text}”: ${sum} = ${number(total)}, rank ${i + 1} of step ${t}: ${fate}.`;
  }
  if (step === 0)
    return (
      `Nothing is chosen yet: press next. The beam keeps ` +
      `${beam_size === "1" ? "one beginning" : `${beam_size} beginnings`}.`
    );
  const count = (what) => columns[step - 1].filter(([, , , fate]) => fate === what).length;
  const text = `Step ${step}: ${count("kept")} kept, ${count("ended")} ended, the others are pruned.`;
  if (!over(state)) return text;
  return `${text} The search is over: “${spelled(best)}” is best, with ${number(score)}${state.over}.`;
}

// What greedy decoding finds, once a wider search is over.
function sayParting(/** @type {State} */ state) {
  const greedy = state.searches["1"];
  if (!over(state) || !greedy || state.beam_size === "1") return "";
  const at = parting(greedy.best, shown(state).best);
  if (at === null) return "Greedy decoding finds the same.";
  const found = `“${spelled(greedy.best)}”, with ${number(greedy.score)}${state.over}`;
  return `Greedy decoding finds ${found}: they part at token ${at}.`;
}

function render({ model, el }) {
  const [searches, start, penalty, beam_size, step] = ["searches", "start", "length_penalty", "beam_size", "step"].map(
    (name) => model.get(name),
  );
  /** @type {State} */
  const state = { searches, start, over: penalty ? " over the length penalty" : "", beam_size, step, pointed: null };

  const controls = add(el, "div", { class: "d2lmini-controls" }),
    sizes = Object.keys(searches);
  const options = Object.fromEntries(sizes.map((size) => [size, size === "1" ? "1, greedy" : size]));
  if (sizes.length > 1)
    choice(controls, { label: "beam", options, value: beam_size }, (size) => {
      const done = over(state); // a search that is over is followed by one that is
      state.beam_size = size;
      keep(model, "beam_size", size);
      const { length } = shown(state).columns;
      walk.end(length);
      walk.go(done ? length : Math.min(state.step, length));
    });
  const walk = stepper(
    add(el, "div", { class: "d2lmini-controls" }),
    { label: "step", max: shown(state).columns.length, value: step },
    (to) => {
      if (to !== state.step) {
        state.step = to;
        keep(model, "step", to);
      }
      state.pointed = null;
      paint();
    },
  );
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 3em" });
  if (start.includes(" ")) add(el, "p", { class: "d2lmini-said" }, `Prompt: ${start} …`);
  const box = scroller(el),
    hold = add(box, "div");
  const legend =
    "Best first, with the log-probability so far. Bold frame: kept; double frame: ended; faint: pruned; dot: what " +
    "greedy decoding takes.";
  add(el, "div", {}, legend);
  const others = add(el, "div", { class: "d2lmini-parting" });

  let light = (/** @type {Place[]} */ _places) => {};
  function mark() {
    light(lit(state));
    note.textContent = say(state);
  }
  function paint() {
    light = tree(hold, state, mark);
    box.scrollLeft = x(state.step) + WIDE - box.clientWidth + 6;
    others.textContent = sayParting(state);
    mark();
  }
  paint();
}

export default { render };
