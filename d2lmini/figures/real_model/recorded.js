// What was recorded of the real model: for readers who have not loaded it.
import { add, choice, strongest, unpack } from "../base/index.js";
import { tokenBars } from "../page/next_bars.js";
import { lossBox } from "./losses.js";
import { headName, namesBefore, tokenName } from "./text.js";
import { tokenBox } from "./token_box.js";

// `recorded` is real_model.json; `answers` of {title, tokens, given, next}, `heads`, `losses`.
export function realModelRecorded(parent, { answers, heads, losses }) {
  const parts = new Map();
  answers.forEach((one, i) => {
    parts.set(String(i), one.title);
  });
  if (heads) parts.set("heads", "Where two heads look");
  if (losses) parts.set("losses", "The loss of each token of a text");
  const controls = add(parent, "div", { class: "d2lmini-controls", style: "margin: 4px 0" });
  choice(controls, { label: "recorded", options: parts, value: "0" }, show);
  const body = add(parent, "div");
  show("0");

  function show(part) {
    body.replaceChildren();
    if (part === "heads") recordedHeads(body, heads);
    else if (part === "losses") recordedLosses(body, losses);
    else recordedAnswer(body, answers[Number(part)]);
  }
}

function recordedAnswer(parent, { tokens, given, next }) {
  const panels = add(parent, "div", { class: "d2lmini-panels" }),
    box = tokenBox(add(panels, "div"), { label: "the text", choose: (i) => paint(i) }),
    figure = add(panels, "figure"),
    bars = tokenBars(figure, next[0].length, 104),
    caption = add(figure, "figcaption", { style: "min-height: 2.8em" });
  const named = tokens.map((name) => ({ name, special: /^<\|.*\|>$/.test(name) }));
  paint(given - 1);

  function paint(i) {
    const told = next[i - given + 1];
    box({ tokens: named, given, chosen: i });
    bars(told ? told.map(([name, p]) => ({ id: name, name: tokenName(name), own: p, after: p })) : null, {
      next: tokens[i + 1],
      choose(name) {
        if (name === tokens[i + 1]) paint(i + 1);
        else caption.textContent = `Load the model to go on with “${tokenName(name)}”.`;
      },
    });
    caption.textContent = told
      ? `After “${tokenName(tokens[i])}”: the ${told.length} likeliest tokens; ✓ marks the one that was written.`
      : "What comes next was recorded from the end of the prompt on.";
  }
}

function recordedHeads(parent, { tokens, heads }) {
  let now = 0,
    at = tokens.length - 1;
  const options = new Map(heads.map(({ block, head, what }, i) => [String(i), `${block + 1}.${head + 1}: ${what}`]));
  choice(add(parent, "div", { class: "d2lmini-controls" }), { label: "head", options, value: "0" }, (value) => {
    now = Number(value);
    paint();
  });
  const weights = heads.map((one) => Array.from(unpack(one.weights), (byte) => byte / 255));
  const box = tokenBox(parent, {
    label: "a text, shaded by where the head looks",
    choose(i) {
      at = i;
      paint();
    },
  });
  const note = add(parent, "p", { style: "margin: 4px 0; min-height: 2.8em", "aria-live": "polite" });
  paint();

  function paint() {
    const row = weights[now].slice(at * tokens.length, at * tokens.length + at + 1),
      most = strongest(namesBefore(tokens.slice(0, at + 1)), (j) => row[j]);
    box({ tokens: tokens.map((name) => ({ name })), chosen: at, shade: row });
    note.textContent = `${headName(heads[now])}: at “${tokenName(tokens[at])}” it looks most at ${most}.`;
  }
}

function recordedLosses(parent, { rows, nats }) {
  add(
    parent,
    "p",
    { style: "margin: 4px 0" },
    `The mean loss is ${nats.toFixed(3)} nats per token. Choose a token to see its loss.`,
  );
  const all = rows.map(([piece, loss, next]) => ({
    piece,
    nats: loss,
    next: { pieces: next.map(([name]) => name), p: next.map(([, p]) => p) },
  }));
  const box = lossBox(parent, (i) => box(all, i));
  box(all, 1);
}
