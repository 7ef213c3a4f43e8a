// A word is masked, bars show how sure a model is there; the reader guesses, and then sees which words these are.
import { add, button, choice, draw, keepAll, panel, place, rove, unpack } from "./base/index.js";
import { looked, placeOf, scaleEnd } from "./numbers/mask_guess.js";

/**
 * @typedef {import("./numbers/mask_guess.js").Look} Look
 * @typedef {{ passage: number, position: number, guess: string, revealed: boolean }} State
 */

const LINE = 20,
  NAME = 112,
  BAR = 166;
const SEES = ["A model that sees both sides", "A model that sees the left side alone"];

const short = (word) => ([...word].length > 13 ? [...word].slice(0, 12).join("") + "…" : word),
  number = (p) => (p >= 0.0005 ? p.toFixed(3) : "< 0.001"),
  rank = (i) => ["first", "second", "third"][i] ?? `${i + 1}th`;

// The guesses of model `n` as bars. Returns: a function that shows those of a place, up to `end` of the scale.
function chart(parent, n, K) {
  const figure = add(parent, "figure"),
    head = add(figure, "div", { style: "margin-bottom: 4px" });
  const label = `${SEES[n]}: its guesses and their probabilities`,
    { svg } = panel(figure, { width: 340, height: LINE * (K + 1) + 8, x: [0, 1], y: [0, 1], label });
  const rows = Array.from({ length: K + 1 }, (_, i) => {
    const y = LINE * i + 4,
      row = draw(svg, "g");
    return {
      row,
      name: draw(row, "text", { x: NAME, y: y + 14, "text-anchor": "end" }),
      bar: draw(row, "rect", { x: NAME + 8, y: y + 3, height: LINE - 6 }),
      share: draw(row, "text", { y: y + 14 }),
    };
  });

  return ({ list, place: at, p }, tokens, { position: t, revealed }, end) => {
    const seen = [...tokens.slice(0, t), "[MASK]", ...(n ? [] : tokens.slice(t + 1))];
    figure.dataset.truth = at;
    head.replaceChildren();
    add(head, "b", {}, SEES[n]);
    add(head, "div", {}, n && !t ? "nothing stands to the left" : seen.join(" "));
    const more = at < 0 && list.length ? [tokens[t], p] : []; // below its guesses the true one, in the last row
    rows.forEach(({ row, name, bar, share }, i) => {
      const [word, value = null] = i === K ? more : (list[i] ?? []);
      const truth = revealed && word !== undefined && (i === at || i === K);
      row.style.display = word === undefined || (!revealed && i === K) ? "none" : "";
      name.textContent = !revealed ? "?" : (truth ? "✓ " : "") + short(word ?? "");
      place(name, { "font-weight": truth ? 700 : 400 });
      const width = Math.max(1, (BAR * (value ?? 0)) / end);
      place(bar, { width, fill: truth ? "var(--orange)" : "var(--blue)", "fill-opacity": 0.8 });
      place(share, { x: NAME + 14 + width });
      share.textContent = value === null ? `not among the ${list.length} likeliest` : number(value);
    });
  };
}

// What a model guesses, and where the reader's guess is.
function tell(sees, /** @type {Look} */ { list, place: at, p }, token, guess) {
  if (!list.length) return `${sees} has no guess here.`;
  const truth =
    at >= 0
      ? `is its ${rank(at)} guess, ${number(p)}.`
      : p === null
        ? "is not among its guesses."
        : `is not among its ${list.length} likeliest, it has ${number(p)}.`;
  const said = `${sees}: “${token}” ${truth}`;
  const mine = placeOf(list, guess);
  if (mine === null) return said;
  return (
    `${said} Yours, “${guess.trim()}”, ` +
    (mine >= 0 ? `is its ${rank(mine)}, ${number(list[mine][1])}.` : "is not among them.")
  );
}

function render({ model, el }) {
  const names = model.get("names").split("\n"),
    top = model.get("top"),
    unpacked = (view) =>
      Object.fromEntries(Object.entries(view).map(([key, text]) => [key, unpack(text, Uint16Array)])),
    passages = model.get("passages").map((one) => ({ ...one, views: one.views.map(unpacked) }));
  const [passage, position, guess, revealed] = ["passage", "position", "guess", "revealed"].map((key) =>
      model.get(key),
    ),
    state = /** @type {State} */ ({ passage, position, guess, revealed });
  const change = (changes, act = paint) => {
    keepAll(model, state, changes);
    act();
  };

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const titles = passages.map(({ tokens }) => {
    const text = tokens.join(" ");
    return text.length > 44 ? text.slice(0, 43) + "…" : text;
  });
  if (passages.length > 1)
    choice(choosing, { label: "sentence", options: { ...titles }, value: passage }, (n) => {
      change({ passage: Number(n), position: passages[n].telling, guess: "", revealed: false }, build);
    });
  const line = add(el, "div", {
    class: "d2lmini-maps",
    role: "group",
    "aria-label": "words to hide: arrow keys go from word to word",
    style: "gap: 5px; margin-bottom: 10px",
  });
  const asking = add(el, "div", { class: "d2lmini-controls" });
  const typing = add(asking, "label", { class: "d2lmini-control" });
  add(typing, "span", {}, "your guess");
  const attributes = { type: "text", maxlength: 40, size: 14, "aria-label": "your guess" },
    field = add(typing, "input", { ...attributes, spellcheck: "false", autocomplete: "off" });
  field.addEventListener("input", () => change({ guess: field.value }));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") change({ revealed: true });
  });
  const reveal = button(asking, "reveal", () => change({ revealed: !state.revealed }));
  const high = "min-height: 3em; margin-bottom: 6px",
    note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: high });
  const panels = add(el, "div", { class: "d2lmini-panels", style: "align-items: flex-end" }),
    charts = passages[0].views.map((_, n) => chart(panels, n, top));
  const legend = add(el, "div", { class: "d2lmini-key" });

  let words = /** @type {HTMLButtonElement[]} */ ([]);
  function build() {
    line.replaceChildren();
    words = passages[state.passage].tokens.map((token, t) =>
      button(line, token, () => change({ position: t, guess: "", revealed: false }), {
        "aria-label": `hide ${token}, word ${t + 1}`,
      }),
    );
    rove(words, { entry: state.position });
    paint();
  }
  function paint() {
    const { tokens, views } = passages[state.passage],
      t = state.position;
    words.forEach((node, i) => {
      place(node, { "aria-pressed": i === t });
      node.textContent = i === t && !state.revealed ? "[MASK]" : tokens[i];
    });
    if (field.value !== state.guess) field.value = state.guess;
    reveal.textContent = state.revealed ? "hide" : "reveal";
    const looks = views.map((view) => looked(view, { names, top, tokens, position: t })),
      end = scaleEnd(looks);
    legend.textContent =
      `Bars: probabilities from 0 to ${end}.` + (state.revealed ? " Orange, ✓: the word of the text." : "");
    looks.forEach((look, n) => charts[n](look, tokens, state, end));
    note.textContent = state.revealed
      ? looks.map((look, n) => tell(SEES[n], look, tokens[t], state.guess)).join(" ")
      : `Word ${t + 1} of ${tokens.length} is hidden. Which word is it, and which model knows it? Guess, then reveal.`;
  }
  build();
}

export default { render };
