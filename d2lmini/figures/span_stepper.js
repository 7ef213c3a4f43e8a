// Span corruption: words, noise, input, target, and the words again. The rule is that of corrupt_spans.
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
  const settings = add(el, "div", { class: "d2lmini-controls" });
  const title = ({ words: list }) => {
    const text = list.join(" ");
    return text.length > 40 ? text.slice(0, 39) + "…" : text;
  };
  if (texts.length > 1)
    choice(settings, { label: "text", options: { ...texts.map(title) }, value: now.text }, (n) =>
      take({ text: Number(n) }),
    );
  choice(
    settings,
    {
      label: "share to draw",
      options: { ...shares.map((share) => `${+(100 * share).toFixed(1)} %`) },
      value: now.share,
    },
    (n) => take({ share: Number(n) }),
  );
  choice(settings, { label: "mean span to draw", options: { ...means }, value: now.mean }, (n) =>
    take({ mean: Number(n) }),
  );
  button(settings, "draw again", () => take({ draw: (now.draw + 1) % count }));
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 3em; margin-bottom: 6px",
  });

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    rows = add(panels, "div", { style: "flex: 3 1 20rem" });
  const lines = ["words", ...STEPS.slice(2)].map((name, i) => {
    const row = add(rows, "div", { style: "margin-bottom: 8px" });
    add(row, "div", { style: "opacity: 0.85" }, name);
    return {
      box: add(row, "div", {
        role: "group",
        "aria-label": name,
        style: "display: flex; flex-wrap: wrap; gap: 4px",
        ...(i ? {} : { class: "d2lmini-maps" }),
      }),
    };
  });
  const side = add(panels, "div", { style: "flex: 1 1 13rem" }),
    sheet = add(side, "table"),
    body = add(sheet, "tbody");
  add(sheet, "caption", {}, "how long each is, in tokens");
  const cells = ["words", "noise", "spans", "input", "target"].map((name) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return [add(row, "td"), add(row, "td")];
  });
  add(el, "div", { class: "d2lmini-key" }, "Orange: noise, which the model has to write; blue: sentinels.");

  const LOOK = {
    kept: "none",
    noise: "color-mix(in srgb, var(--orange) 32%, transparent)",
    sentinel: "color-mix(in srgb, var(--blue) 35%, transparent)",
  };
  let picks;
  function build() {
    const [{ box }] = lines;
    box.replaceChildren();
    picks = words().map((word, i) => button(box, word, () => choose(i)));
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
            "padding: 3px 7px; border: 1px solid #8888; border-radius: 5px; " +
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
    picks.forEach((node, i) => {
      const lit = step > 1 && noise[i] === 1;
      place(node, { "aria-pressed": lit });
      node.style.background = lit ? LOOK.noise : "none";
    });
    [input, target, again].forEach((tokens, i) => {
      show(lines[i + 1].box, tokens);
      lines[i + 1].box.style.visibility = step >= i + 3 ? "" : "hidden"; // its place is kept: nothing jumps
    });
    const how = [
      "",
      `${((100 * dropped) / T).toFixed(0)} % of ${T}`,
      spans ? `${+(dropped / spans).toFixed(1)} words each` : "",
      `${T} − ${dropped} + ${spans}`,
      `${dropped} + ${spans} + 1`,
    ];
    [T, dropped, spans, input.length, target.length].forEach((n, i) => {
      const known = step >= [1, 2, 2, 3, 4][i];
      cells[i][0].textContent = known ? how[i] : "";
      cells[i][1].textContent = known ? n : "…";
    });
    const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`,
      names = (tokens) => tokens.map(({ text }) => text).join(" ");
    const source = now.draw < 0 ? "chosen word by word" : `draw ${now.draw + 1} of ${count}`;
    note.textContent =
      `${step}. ` +
      [
        `The text: ${many(T, "word")}. No word is chosen yet.`,
        `${many(dropped, "word")} of ${T} ${dropped === 1 ? "is" : "are"} noise, in ${many(spans, "span")} ` +
          `(${source}). Words side by side are one span.`,
        `Each span becomes one sentinel. What the encoder reads: ${names(input)}`,
        `What the decoder has to write, each span behind its sentinel, and one more sentinel, which ends it: ` +
          `${names(target)}`,
        `What stands behind a sentinel in the target takes its place in the input: the ` +
          `${many(again.length, "word")} are back.`,
      ][step - 1];
  }
  build();
  paint();
}

export default { render };
