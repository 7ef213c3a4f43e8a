// A word is masked, bars show how sure a model is there; the reader guesses, and then sees which words these are.
import { add, button, choice, draw, keep, panel, place, rove, unpack } from "./base/index.js";

const LINE = 20,
  NAME = 112,
  BAR = 166,
  NONE = 65535,
  SCALES = [0.05, 0.1, 0.2, 0.5, 1]; // of the scale of the bars
const SEES = ["A model that sees both sides", "A model that sees the left side alone"];

function render({ model, el }) {
  const names = model.get("names").split("\n"),
    K = model.get("top"),
    passages = model.get("passages").map(({ tokens, telling, views }) => ({
      tokens,
      telling,
      views: views.map((view) =>
        Object.fromEntries(Object.entries(view).map(([key, text]) => [key, unpack(text, Uint16Array)])),
      ),
    }));
  const now = Object.fromEntries(["passage", "position", "guess", "revealed"].map((key) => [key, model.get(key)]));
  const change = (changes, act = paint) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
    act();
  };
  const short = (word) => ([...word].length > 13 ? [...word].slice(0, 12).join("") + "…" : word);
  const number = (p) => (p >= 0.0005 ? p.toFixed(3) : "< 0.001");
  const plain = (word) =>
    word
      .replace(/^(##|▁|Ġ)/, "")
      .trim()
      .toLowerCase();
  const rank = (i) => ["first", "second", "third"][i] ?? `${i + 1}th`;

  // What a view has of the masked place: the guesses, the rank of the truth (-1: not among them), its probability.
  function looked({ ids, parts, truth }) {
    const { tokens } = passages[now.passage],
      at = now.position * K,
      list = [];
    for (let i = at; i < at + K && ids[i] !== NONE; i++) list.push([names[ids[i]], parts[i] / NONE]);
    const place = list.findIndex(([name]) => name === tokens[now.position]);
    return { list, place, p: truth.length && list.length ? truth[now.position] / NONE : list[place]?.[1] };
  }

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const titles = passages.map(({ tokens }) => {
    const text = tokens.join(" ");
    return text.length > 44 ? text.slice(0, 43) + "…" : text;
  });
  if (passages.length > 1)
    choice(choosing, { label: "sentence", options: { ...titles }, value: now.passage }, (n) => {
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
  const field = add(typing, "input", {
    type: "text",
    maxlength: 40,
    size: 14,
    "aria-label": "your guess",
    spellcheck: "false",
    autocomplete: "off",
  });
  field.addEventListener("input", () => change({ guess: field.value }));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") change({ revealed: true });
  });
  const reveal = button(asking, "reveal", () => change({ revealed: !now.revealed }));
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 3em; margin-bottom: 6px",
  });

  const panels = add(el, "div", { class: "d2lmini-panels", style: "align-items: flex-end" }),
    count = passages[0].views.length;
  const charts = Array.from({ length: count }, (_, n) => {
    const figure = add(panels, "figure"),
      head = add(figure, "div", { style: "margin-bottom: 4px" });
    const { svg } = panel(figure, {
      width: 340,
      height: LINE * (K + 1) + 8,
      x: [0, 1],
      y: [0, 1],
      label: `${SEES[n]}: its guesses and their probabilities`,
    });
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
    return { figure, head, rows };
  });
  const legend = add(el, "div", { class: "d2lmini-key" });

  let words;
  function build() {
    const { tokens } = passages[now.passage];
    line.replaceChildren();
    words = tokens.map((token, t) =>
      button(line, token, () => change({ position: t, guess: "", revealed: false }), {
        "aria-label": `hide ${token}, word ${t + 1}`,
      }),
    );
    rove(words, { entry: now.position });
    paint();
  }

  function paint() {
    const { tokens, views } = passages[now.passage],
      t = now.position,
      told = [];
    words.forEach((node, i) => {
      place(node, { "aria-pressed": i === t });
      node.textContent = i === t && !now.revealed ? "[MASK]" : tokens[i];
    });
    if (field.value !== now.guess) field.value = now.guess;
    reveal.textContent = now.revealed ? "hide" : "reveal";
    const shown = views.map(looked),
      most = Math.max(...shown.flatMap(({ list, p }) => [p ?? 0, ...list.map((pair) => pair[1])])),
      end = SCALES.find((x) => x >= most) ?? 1;
    legend.textContent =
      `Bars: probabilities from 0 to ${end}.` + (now.revealed ? " Orange, ✓: the word of the text." : "");
    charts.forEach(({ figure, head, rows }, n) => {
      const { list, place: at, p } = shown[n],
        seen = [...tokens.slice(0, t), "[MASK]", ...(n ? [] : tokens.slice(t + 1))];
      figure.dataset.truth = at;
      head.replaceChildren();
      add(head, "b", {}, SEES[n]);
      add(head, "div", {}, n && !t ? "nothing stands to the left" : seen.join(" "));
      rows.forEach(({ row, name, bar, share }, i) => {
        const [word, value] = i < list.length ? list[i] : i === K && at < 0 && list.length ? [tokens[t], p] : [];
        const hidden = !now.revealed,
          truth = word !== undefined && (i === at || i === K);
        row.style.display = word === undefined || (hidden && i === K) ? "none" : "";
        name.textContent = hidden ? "?" : (truth ? "✓ " : "") + short(word ?? "");
        place(name, { "font-weight": truth && !hidden ? 700 : 400 });
        const width = Math.max(1, (BAR * (value ?? 0)) / end);
        place(bar, { width, fill: truth && !hidden ? "var(--orange)" : "var(--blue)", "fill-opacity": 0.8 });
        place(share, { x: NAME + 14 + width });
        share.textContent = value === undefined ? `not among the ${list.length} likeliest` : number(value);
      });
      if (!list.length) {
        told.push(`${SEES[n]} has no guess here.`);
        return;
      }
      const truth =
        `“${tokens[t]}” ` +
        (at >= 0
          ? `is its ${rank(at)} guess, ${number(p)}.`
          : p === undefined
            ? "is not among its guesses."
            : `is not among its ${list.length} likeliest, it has ${number(p)}.`);
      const own = plain(now.guess),
        mine = own ? list.findIndex(([word]) => plain(word) === own) : -1;
      told.push(
        `${SEES[n]}: ${truth}` +
          (!own
            ? ""
            : mine >= 0
              ? ` Yours, “${now.guess.trim()}”, is its ${rank(mine)}, ${number(list[mine][1])}.`
              : ` Yours, “${now.guess.trim()}”, is not among them.`),
      );
    });
    note.textContent = now.revealed
      ? told.join(" ")
      : `Word ${t + 1} of ${tokens.length} is hidden. Which word is it, and which model knows it? Guess, then reveal.`;
  }
  build();
}

export default { render };
