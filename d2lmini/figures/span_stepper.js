// Span corruption: words, noise, input, target, and the words again. The rule is that of corrupt_spans.
import { add, button, choice, keep, place, rove, stepper, unpack } from "./base/index.js";

const STEPS = ["the words", "the noise", "the input", "the target", "restored"];

// Each span of noise becomes a sentinel in the input; the target has the sentinel and what stood there, and a last
// sentinel.
function corrupt(words, noise, sentinels) {
  const input = [],
    target = [];
  let spans = 0;
  words.forEach((word, i) => {
    if (noise[i] && !noise[i - 1]) {
      const mark = { text: sentinels[spans++], kind: "sentinel" };
      input.push(mark);
      target.push(mark);
    }
    (noise[i] ? target : input).push({ text: word, kind: noise[i] ? "noise" : "kept" });
  });
  target.push({ text: sentinels[spans], kind: "sentinel" });
  return { input, target, spans };
}

// What stands behind a sentinel in the target takes its place in the input.
function restore(input, target) {
  const behind = new Map();
  let list;
  for (const token of target) {
    if (token.kind === "sentinel") {
      list = [];
      behind.set(token.text, list);
    } else list.push(token);
  }
  return input.flatMap((token) => (token.kind === "sentinel" ? behind.get(token.text) : [token]));
}

function render({ model, el }) {
  const [texts, shares, means, count] = ["texts", "shares", "means", "count"].map((key) => model.get(key));
  const sentinels = model.get("sentinels").split(" "),
    bytes = texts.map(({ draws }) => unpack(draws));
  const now = Object.fromEntries(
    ["text", "share", "mean", "draw", "noise", "step"].map((key) => [key, model.get(key)]),
  );
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
  };
  const words = () => texts[now.text].words;

  // The noise of a draw, as a text of 0 and 1: bit by bit, the highest of a byte first.
  function drawn({ text, share, mean, draw }) {
    const T = texts[text].words.length,
      at = ((share * means.length + mean) * count + draw) * T;
    return Array.from({ length: T }, (_, i) => (bytes[text][(at + i) >> 3] >> (7 - ((at + i) & 7))) & 1).join("");
  }
  function take(changes) {
    const next = { ...now, draw: 0, ...changes };
    change({ ...changes, draw: next.draw, noise: drawn(next) });
    if (changes.text !== undefined) build();
    walk.go(Math.max(2, now.step));
  }

  const walking = add(el, "div", { class: "d2lmini-controls" });
  const walk = stepper(walking, { label: "step", min: 1, max: STEPS.length, value: now.step }, (step) => {
    change({ step });
    paint();
  });
  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const settings = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 16px" });
  const title = ({ words: list }) => {
    const text = list.join(" ");
    return text.length > 40 ? text.slice(0, 39) + "…" : text;
  };
  if (texts.length > 1)
    choice(choosing, { label: "text", options: { ...texts.map(title) }, value: now.text }, (n) =>
      take({ text: Number(n) }),
    );
  const percents = shares.map((share) => `about ${+(100 * share).toFixed(1)} %`);
  const menus = {
    share: choice(settings, { label: "share of noise", options: { ...percents }, value: now.share }, (n) =>
      take({ share: Number(n) }),
    ),
    mean: choice(settings, { label: "mean span", options: { ...means }, value: now.mean }, (n) =>
      take({ mean: Number(n) }),
    ),
  };
  // what the menus say of noise that was not drawn; nobody chooses it there
  for (const menu of Object.values(menus)) add(menu, "option", { value: "own", hidden: "" }, "as chosen");
  button(settings, "draw again", () => take({ draw: (now.draw + 1) % count }));
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 3em; margin-bottom: 6px",
  });

  const lines = ["words", ...STEPS.slice(2)].map((name, i) => {
    const row = add(el, "div", { style: "margin-bottom: 8px" });
    return {
      head: add(row, "div", { class: "d2lmini-length", style: "opacity: 0.85" }),
      box: add(row, "div", {
        role: "group",
        "aria-label": name,
        style: "display: flex; flex-wrap: wrap; gap: 4px",
        ...(i ? {} : { class: "d2lmini-maps" }),
      }),
    };
  });
  add(el, "div", { class: "d2lmini-key" }, "Orange: noise, to be written. Blue: sentinels.");

  const LOOK = {
    kept: "none",
    noise: "color-mix(in srgb, var(--orange) 32%, transparent)",
    sentinel: "color-mix(in srgb, var(--blue) 35%, transparent)",
  };
  let picks;
  function build() {
    const [{ box }] = lines;
    box.replaceChildren();
    picks = words().map((word, i) =>
      button(box, word, () => choose(i), { style: "min-height: 26px; padding: 1px 5px" }),
    );
    rove(picks);
  }
  // At the first step nothing is chosen yet: a click begins a choice of one's own.
  function choose(i) {
    const noise = now.step === 1 ? words().map(() => "0") : [...now.noise];
    noise[i] = noise[i] === "1" ? "0" : "1";
    change({ noise: noise.join(""), draw: -1 });
    walk.go(Math.max(2, now.step));
  }
  const show = (box, tokens) => {
    box.replaceChildren();
    for (const { text, kind } of tokens)
      add(
        box,
        "span",
        {
          "data-kind": kind,
          style:
            "padding: 0 5px; border-radius: 5px; " +
            `background: ${LOOK[kind]}; font-weight: ${kind === "sentinel" ? 600 : 400}`,
        },
        text,
      );
  };

  function paint() {
    const noise = [...now.noise].map(Number),
      T = noise.length,
      dropped = noise.filter(Boolean).length,
      list = words();
    const { input, target, spans } = corrupt(list, noise, sentinels),
      again = restore(input, target),
      { step } = now;
    for (const [name, menu] of Object.entries(menus)) menu.value = now.draw < 0 ? "own" : now[name];
    picks.forEach((node, i) => {
      const lit = step > 1 && noise[i] === 1;
      place(node, { "aria-pressed": lit });
      node.style.background = lit ? LOOK.noise : "none";
    });
    [input, target, again].forEach((tokens, i) => {
      show(lines[i + 1].box, tokens);
      lines[i + 1].box.style.visibility = step >= i + 3 ? "" : "hidden"; // its place is kept: nothing jumps
    });
    const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`,
      names = (tokens) => tokens.map(({ text }) => text).join(" ");
    const source = now.draw < 0 ? "chosen word by word" : `draw ${now.draw + 1} of ${count}`;
    const whole = `words: ${T}`;
    const lengths = [
      step > 1
        ? `${whole}, of them noise: ${dropped} (${((100 * dropped) / T).toFixed(0)} %), in ${many(spans, "span")}`
        : whole,
      `the input: ${T} − ${dropped} + ${spans} = ${many(input.length, "token")}`,
      `the target: ${dropped} + ${spans} + 1 = ${many(target.length, "token")}`,
      `restored: ${many(again.length, "word")}`,
    ];
    lines.forEach(({ head }, i) => {
      head.textContent = lengths[i];
      head.style.visibility = i && step < i + 2 ? "hidden" : "";
    });
    note.textContent =
      `${step}. ` +
      [
        `The text: ${many(T, "word")}. No word is chosen yet.`,
        `${many(dropped, "word")} of ${T} ${dropped === 1 ? "is" : "are"} noise, in ${many(spans, "span")} ` +
          `(${source}). Words side by side are one span.`,
        `Each span becomes one sentinel. What the encoder reads: ${names(input)}`,
        `What the decoder has to write, each span after its sentinel, and one more sentinel, which ends it: ` +
          `${names(target)}`,
        `What follows a sentinel in the target takes its place in the input: the ` +
          `${many(again.length, "word")} are back.`,
      ][step - 1];
  }
  build();
  paint();
}

export default { render };
