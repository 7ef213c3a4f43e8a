// Span corruption: words, noise, input, target, and the words again.
import { add, button, choice, keepAll, place, rove, stepper, unpack } from "./base/index.js";
import { corrupt, drawnNoise, restore } from "./numbers/span_stepper.js";

/**
 * `noise` of the words of a text as 0 and 1, of a `draw` (-1: chosen word by word) of a setting of `share` and `mean`.
 * @typedef {{ text: number, share: number, mean: number, draw: number, noise: string, step: number }} State
 * @typedef {ReturnType<typeof corrupt> & { words: string[], again: import("./numbers/span_stepper.js").Token[],
 *   dropped: number }} Made
 */

const STEPS = ["the words", "the noise", "the input", "the target", "restored"];
const LOOK = {
  kept: "none",
  noise: "color-mix(in srgb, var(--orange) 32%, transparent)",
  sentinel: "color-mix(in srgb, var(--blue) 35%, transparent)",
};

const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`,
  names = (tokens) => tokens.map(({ text }) => text).join(" ");

function showTokens(box, tokens) {
  box.replaceChildren();
  for (const { text, kind } of tokens) {
    const style =
      "padding: 0 5px; border-radius: 5px; " +
      `background: ${LOOK[kind]}; font-weight: ${kind === "sentinel" ? 600 : 400}`;
    add(box, "span", { "data-kind": kind, style }, text);
  }
}

// How long the four rows are, and of what.
function lengths(/** @type {Made} */ { words: { length: T }, dropped, spans, input, target, again }, step) {
  const share = ((100 * dropped) / T).toFixed(0);
  return [
    `words: ${T}` + (step > 1 ? `, of them noise: ${dropped} (${share} %), in ${many(spans, "span")}` : ""),
    `the input: ${T} − ${dropped} + ${spans} = ${many(input.length, "token")}`,
    `the target: ${dropped} + ${spans} + 1 = ${many(target.length, "token")}`,
    `restored: ${many(again.length, "word")}`,
  ];
}

function say(/** @type {Made} */ { words: { length: T }, dropped, spans, input, target, again }, step, source) {
  const told = [
    `The text: ${many(T, "word")}. No word is chosen yet.`,
    `${many(dropped, "word")} of ${T} ${dropped === 1 ? "is" : "are"} noise, in ${many(spans, "span")} ` +
      `(${source}). Words side by side are one span.`,
    `Each span becomes one sentinel. What the encoder reads: ${names(input)}`,
    `What the decoder has to write, each span after its sentinel, and one more sentinel, which ends it: ` +
      `${names(target)}`,
    `What follows a sentinel in the target takes its place in the input: the ` +
      `${many(again.length, "word")} are back.`,
  ];
  return `${step}. ${told[step - 1]}`;
}

// The words, of which the reader may choose the noise, and below them input, target and what is restored.
function rowsOf(el, /** @type {State} */ state, choose) {
  const rows = ["words", ...STEPS.slice(2)].map((name, i) => {
    const row = add(el, "div", { style: "margin-bottom: 8px" }),
      style = "display: flex; flex-wrap: wrap; gap: 4px";
    return {
      head: add(row, "div", { class: "d2lmini-length", style: "opacity: 0.85" }),
      box: add(row, "div", { role: "group", "aria-label": name, style, ...(i ? {} : { class: "d2lmini-maps" }) }),
    };
  });
  let picks = /** @type {HTMLButtonElement[]} */ ([]);
  return {
    build(/** @type {string[]} */ words) {
      rows[0].box.replaceChildren();
      const style = "min-height: 26px; padding: 1px 5px";
      picks = words.map((word, i) => button(rows[0].box, word, () => choose(i), { style }));
      rove(picks);
    },
    paint(/** @type {Made} */ made) {
      const { step, noise } = state,
        said = lengths(made, step);
      picks.forEach((node, i) => {
        const lit = step > 1 && noise[i] === "1";
        place(node, { "aria-pressed": lit });
        node.style.background = lit ? LOOK.noise : "none";
      });
      [made.input, made.target, made.again].forEach((tokens, i) => {
        showTokens(rows[i + 1].box, tokens);
        rows[i + 1].box.style.visibility = step >= i + 3 ? "" : "hidden"; // its place is kept: nothing jumps
      });
      rows.forEach(({ head }, i) => {
        head.textContent = said[i];
        head.style.visibility = i && step < i + 2 ? "hidden" : "";
      });
    },
  };
}

function render({ model, el }) {
  const [texts, shares, means, count] = ["texts", "shares", "means", "count"].map((key) => model.get(key));
  const sentinels = model.get("sentinels").split(" "),
    bytes = texts.map(({ draws }) => unpack(draws));
  const [text, share, mean, draw, drawn, first] = ["text", "share", "mean", "draw", "noise", "step"].map((key) =>
    model.get(key),
  );
  /** @type {State} */
  const state = { text, share, mean, draw, noise: drawn, step: first };
  const change = (changes) => keepAll(model, state, changes);
  const words = () => texts[state.text].words;

  // Noise that was drawn, of another setting, text or draw.
  function take(changes) {
    const next = { ...state, draw: 0, ...changes },
      n = (next.share * means.length + next.mean) * count + next.draw;
    const noise = drawnNoise(bytes[next.text], texts[next.text].words.length, n);
    change({ ...changes, draw: next.draw, noise });
    if (changes.text !== undefined) rows.build(words());
    walk.go(Math.max(2, state.step));
  }
  // At the first step nothing is chosen yet: a click begins a choice of one's own.
  function choose(i) {
    const chosen = state.step === 1 ? words().map(() => "0") : [...state.noise];
    chosen[i] = chosen[i] === "1" ? "0" : "1";
    change({ noise: chosen.join(""), draw: -1 });
    walk.go(Math.max(2, state.step));
  }

  const walking = add(el, "div", { class: "d2lmini-controls" });
  const walk = stepper(walking, { label: "step", min: 1, max: STEPS.length, value: first }, (step) => {
    change({ step });
    paint();
  });
  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const settings = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 16px" });
  const titles = texts.map(({ words: list }) => {
    const title = list.join(" ");
    return title.length > 40 ? title.slice(0, 39) + "…" : title;
  });
  if (texts.length > 1)
    choice(choosing, { label: "text", options: { ...titles }, value: text }, (n) => take({ text: Number(n) }));
  const percents = shares.map((part) => `about ${+(100 * part).toFixed(1)} %`);
  const menu = (label, key, options) =>
    choice(settings, { label, options: { ...options }, value: state[key] }, (n) => take({ [key]: Number(n) }));
  const menus = { share: menu("share of noise", "share", percents), mean: menu("mean span", "mean", means) };
  // what the menus say of noise that was not drawn; nobody chooses it there
  for (const one of Object.values(menus)) add(one, "option", { value: "own", hidden: "" }, "as chosen");
  button(settings, "draw again", () => take({ draw: (state.draw + 1) % count }));
  const high = "min-height: 3em; margin-bottom: 6px",
    note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: high });
  const rows = rowsOf(el, state, choose);
  add(el, "div", { class: "d2lmini-key" }, "Orange: noise, to be written. Blue: sentinels.");

  function paint() {
    const noise = [...state.noise].map(Number),
      made = corrupt(words(), noise, sentinels),
      again = restore(made.input, made.target);
    const all = { ...made, again, words: words(), dropped: noise.filter(Boolean).length },
      source = state.draw < 0 ? "chosen word by word" : `draw ${state.draw + 1} of ${count}`;
    for (const [key, one] of Object.entries(menus)) one.value = state.draw < 0 ? "own" : state[key];
    rows.paint(all);
    note.textContent = say(all, state.step, source);
  }
  rows.build(words());
  paint();
}

export default { render };
