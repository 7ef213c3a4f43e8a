// Byte-pair encoding of a text that the reader types: merges are learned and applied in the page.
import { add, columns, draw, keep, panel, place, scroller, stepper, views } from "./base/index.js";
import { closes, join, LONGEST, learn, rankedPairs, split } from "./numbers/bpe_stepper.js";

/**
 * @typedef {import("./numbers/bpe_stepper.js").Learned} Learned
 * @typedef {import("./numbers/bpe_stepper.js").Merge} Merge
 */

const ROWS = 8,
  [WIDTH, HEIGHT] = [230, 96];
const DRAWN = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥" };
const letter = (c) => DRAWN[c] ?? (/^[\p{C}\p{Z}]$/u.test(c) ? `⟨${c.codePointAt().toString(16)}⟩` : c);
const shown = (token) => [...token].map(letter).join("");

/**
 * Shows tokens in a box; `last` is what the last merge made.
 * @param {Element} box
 * @param {(number | string)[]} ids
 * @param {Learned} learned
 * @param {number} [last]
 * @param {Merge} [next]
 */
function showTokens(box, ids, { names, letters }, last, next) {
  box.replaceChildren();
  let word = /** @type {HTMLElement | null} */ (null); // the tokens of one word stay on one line
  ids.forEach((id, i) => {
    const text = typeof id === "string" ? id : names[id];
    const fill =
      typeof id === "string"
        ? "#8884"
        : id === last
          ? "color-mix(in srgb, var(--orange) 45%, transparent)"
          : id < letters
            ? "none"
            : "color-mix(in srgb, var(--blue) 26%, transparent)";
    const soon = next && ((id === next[0] && ids[i + 1] === next[1]) || (ids[i - 1] === next[0] && id === next[1]));
    word ??= add(box, "span", { style: "display: inline-flex; flex-wrap: wrap; gap: 3px 1px; margin: 0 6px 3px 0" });
    const style =
      "font-family: ui-monospace, monospace; padding: 0 3px; border: 1px solid #8888; " +
      `border-radius: 4px; background: ${fill}` +
      (soon ? "; border-bottom: 3px dotted var(--orange)" : "");
    add(word, "span", { class: "token", style }, shown(text));
    if (closes(text)) word = null;
    if (text.endsWith("\n")) add(box, "br");
  });
}

// A curve of numbers against merges. Returns: functions that draw it, and that mark a step of it.
function curve(parent, title, style) {
  const { svg } = panel(parent, {
    width: WIDTH,
    height: HEIGHT,
    x: [0, 1],
    y: [0, 1],
    label: `${title}, against merges`,
  });
  Object.assign(svg.style, style);
  const words = draw(svg, "text", { x: 6, y: 16 }),
    dot = draw(svg, "circle", { r: 4.5, fill: "var(--orange)" }),
    line = draw(svg, "polyline", { fill: "none", stroke: "var(--blue)", "stroke-width": 2 });
  const x = (i, values) => 8 + (i / Math.max(1, values.length - 1)) * (WIDTH - 16),
    y = (i, values) => HEIGHT - 8 - (values[i] / Math.max(1, ...values)) * (HEIGHT - 34);
  return {
    trace(values) {
      place(line, { points: values.map((_, i) => `${x(i, values)},${y(i, values)}`).join(" ") });
    },
    mark(values, step) {
      words.textContent = `${title}: ${values[step]} of at most ${Math.max(...values)}`;
      place(dot, { cx: x(step, values), cy: y(step, values) });
    },
  };
}

// The table of the most frequent pairs. Returns: a function that fills it with those of a text in ids.
function pairTable(parent) {
  const sheet = add(scroller(parent), "table");
  add(sheet, "caption", {}, "most frequent pairs; the first is next");
  const body = columns(sheet, ["pair", "becomes", "times"]);
  return (ids, names) => {
    const pairs = rankedPairs(ids, names);
    body.replaceChildren();
    for (const [a, b, count] of pairs.slice(0, ROWS)) {
      const row = add(body, "tr", { class: body.children.length ? "" : "chosen" });
      add(row, "th", { scope: "row" }, `${shown(names[a])} + ${shown(names[b])}`);
      add(row, "td", {}, shown(names[a] + names[b]));
      add(row, "td", {}, String(count));
    }
    sheet.style.display = pairs.length ? "" : "none";
  };
}

// What another word becomes, which the reader types. Returns: a function that splits it by merges.
function wordBox(el, state, typed) {
  const asking = add(add(el, "div", { class: "d2lmini-controls" }), "label", { class: "d2lmini-control" });
  add(asking, "span", {}, "another word");
  const attributes = { type: "text", maxlength: 40, size: 14, "aria-label": "another word", spellcheck: "false" },
    asked = add(asking, "input", attributes);
  asked.value = state.word;
  asked.addEventListener("input", () => typed(asked.value));
  const answer = add(el, "div", { role: "group", "aria-label": "the word as tokens" });
  const verdict = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });
  return (/** @type {Learned} */ learned, /** @type {Merge[]} */ done) => {
    const pieces = split(state.word, learned.names, done),
      foreign = [...new Set(pieces.filter((piece) => typeof piece === "string"))];
    showTokens(answer, pieces, learned);
    verdict.textContent = !state.word
      ? "Type a word to see its tokens."
      : `“${state.word}”, with the space behind it: ${pieces.length} token${pieces.length > 1 ? "s" : ""}.` +
        (foreign.length
          ? ` Grey: not in the text, so that no token stands for it: ${foreign.map(shown).join(" ")}`
          : "");
  };
}

function say({ text, step }, /** @type {Learned} */ { names, start, merges, used, length }) {
  if (!start.length) return "There is no text to merge: type some.";
  const next = merges[step],
    extra = [...text].length - LONGEST;
  return (
    `After ${step} of ${merges.length} merges: ${length[step]} tokens, ${used[step]} of them different. ` +
    (next
      ? `Next: ${shown(names[next[0]])} + ${shown(names[next[1]])}, ${next[3]} times.`
      : "No pair is left: every word is one token.") +
    (extra > 0 ? ` The text is long: its last ${extra} characters are left out.` : "")
  );
}

function render({ model, el }) {
  const state = { text: model.get("text"), word: model.get("word"), step: model.get("step") };
  let learned = learn(state.text);
  const set = (key, value) => {
    state[key] = value;
    keep(model, key, value);
  };

  const wide = "flex: 1 1 12rem; width: 100%";
  const typing = add(add(el, "div", { class: "d2lmini-controls" }), "label", { class: "d2lmini-control", style: wide });
  add(typing, "span", {}, "text");
  const attributes = { rows: 3, style: "flex: 1; resize: vertical", "aria-label": "text", spellcheck: "false" },
    area = add(typing, "textarea", attributes);
  area.value = state.text;
  area.addEventListener("input", () => {
    set("text", area.value);
    learned = learn(state.text);
    trace();
  });
  const walk = stepper(add(el, "div", { class: "d2lmini-controls" }), { label: "merges", max: 1, value: 0 }, (step) => {
    if (step !== state.step) set("step", step);
    paint();
  });

  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const high = (parent, label, height) => {
    const box = scroller(parent),
      style = `max-height: ${height}; overflow-y: auto; margin: 4px 0 8px; padding: 2px`;
    place(box, { role: "group", "aria-label": label, style });
    return box;
  };
  const line = high(el, "the text as tokens", "9rem");
  const legend =
    "Orange: what the last merge made; blue: made by earlier merges; dotted below: the pair that is merged next.";
  add(el, "div", { class: "d2lmini-key" }, legend);

  const boxes = views(el, "of the merges", ["pairs", "merges so far", "counts"]),
    [pairs, made, graphs] = boxes;
  const used = curve(graphs, "different tokens", {}),
    length = curve(graphs, "tokens", { marginTop: "6px" });
  for (const one of boxes) one.style.flex = "1 1 12rem"; // three in a row
  add(graphs, "figcaption", {}, "against the number of merges, from none to all");
  const paintPairs = pairTable(pairs);
  const paintWord = wordBox(el, state, (word) => {
    set("word", word);
    paint();
  });
  add(made, "figcaption", {}, "the merges so far, in their order, each with how often its pair occurred");
  const list = high(made, "merges so far", "14rem");

  function trace() {
    const { length: end } = learned.merges;
    walk.end(end);
    used.trace(learned.used);
    length.trace(learned.length);
    walk.go(Math.min(state.step, end));
  }
  function paint() {
    const { names, start, merges } = learned,
      done = merges.slice(0, state.step),
      ids = done.reduce(join, start);
    showTokens(line, ids, learned, done.at(-1)?.[2], merges[state.step]);
    paintPairs(ids, names);
    note.textContent = say(state, learned);
    used.mark(learned.used, state.step);
    length.mark(learned.length, state.step);
    paintWord(learned, done);
    const rows = done.map(
      ([a, b, id, count], i) => `${i + 1}. ${shown(names[a])} + ${shown(names[b])} → ${shown(names[id])} (${count})`,
    );
    list.textContent = rows.join("\n") || "none";
    list.style.whiteSpace = "pre-wrap";
    list.scrollTop = list.scrollHeight; // the last one is the news
  }
  trace();
}

export default { render };
