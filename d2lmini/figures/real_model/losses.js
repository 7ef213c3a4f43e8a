// The loss of each token of a text that the reader pastes, by the real model.
import { add, button, columns, scroller } from "../base/index.js";
import { LIVE, newestQuestion } from "../page/host.js";
import { announcer } from "../page/model_box.js";
import { REAL_MODEL } from "./load.js";
import { lossText, natsText, offNames, realModelSentence, realModelUnread, tokenName } from "./text.js";
import { tokenBox } from "./token_box.js";

/** @typedef {import("./text.js").Loss} Loss */

const LOSS_DARKEST = 10; // nats
const LOSS_TEXT = "The cat sat on the mat. The cat sat on the moon. Attention is all you need.";

// `off()`: the heads and blocks that are switched off.
export function realModelLosses(parent, { lost, off }) {
  const question = newestQuestion(parent);
  let rows = /** @type {Loss[]} */ ([]),
    at = 0,
    reading = false;
  const typing = add(parent, "label", { style: "display: block; margin: 4px 0 6px" });
  add(typing, "span", { style: "display: block" }, "text");
  const field = add(typing, "textarea", { rows: 4, dir: "auto", style: "width: 100%; resize: vertical" });
  field.value = LOSS_TEXT;
  const pressing = add(parent, "div", { class: "d2lmini-controls", style: "margin-bottom: 4px" });
  const press = button(pressing, "Compute the losses", () => (reading ? stop() : compute()));
  const say = announcer(parent),
    shown = add(parent, "div", { style: "display: none" });
  const box = lossBox(shown, (i) => {
    at = i;
    paint();
  });
  const fold = add(shown, "details");
  add(fold, "summary", { style: "min-height: 24px" }, "The same as a table");
  const body = lossTable(fold);
  fold.addEventListener("toggle", paint);

  async function compute() {
    const wrong = realModelUnread(field.value);
    if (wrong) return say(wrong);
    const without = off();
    rows = [];
    at = 0;
    reading = true;
    say("Reading …");
    paint();
    try {
      const done = await question.asked((ask) =>
        ask(REAL_MODEL, "real_losses", { text: field.value, top: 3, off: without }, (step) => {
          for (const row of step.rows) rows[row.at] = row;
          paint();
        }),
      );
      if (!done) return;
      reading = false;
      say(
        done.tokens > 1
          ? `The mean loss${offNames(without, ", ")} is ${done.nats.toFixed(3)} nats per token, ` +
              `over the ${rows.length - 1} tokens after the first.`
          : "One token has no loss: no token comes before it. Type more.",
      );
    } catch (/** @type {any} */ error) {
      reading = false;
      if (LIVE.has(REAL_MODEL)) say(realModelSentence(error.message));
      else lost(error);
    }
    paint();
  }

  function stop() {
    question.stop();
    reading = false;
    say(`Stopped after ${rows.length} tokens.`);
    paint();
  }

  function paint() {
    press.textContent = reading ? "Stop" : "Compute the losses";
    shown.style.display = rows.length ? "" : "none";
    box(rows, at);
    if (fold.open) body(rows);
  }
}

// The words, the darker the higher their loss, and a line about the chosen one. Returns a function of rows and a place.
export function lossBox(parent, choose) {
  const box = tokenBox(parent, { label: "losses of the text", choose, colour: "--orange" });
  const line = add(parent, "p", { style: "margin: 4px 0; min-height: 2.8em", "aria-live": "polite" });
  return (/** @type {Loss[]} */ rows, /** @type {number} */ at) => {
    const tokens = rows.map(({ piece, nats }) => ({ name: piece, title: natsText(nats) })),
      shade = rows.map(({ nats }) => Math.min(1, (nats ?? 0) / LOSS_DARKEST));
    box({ tokens, chosen: at, shade });
    line.textContent = rows[at] ? lossText(rows[at]) : "";
  };
}

// Returns a function that fills it.
function lossTable(parent) {
  const box = scroller(parent);
  box.style.maxHeight = "20em";
  box.style.overflowY = "auto";
  const table = add(box, "table", { class: "d2lmini-words" });
  add(table, "caption", {}, "Loss of each token");
  const body = columns(table, ["token", "nats", "expected"]);
  return (/** @type {Loss[]} */ rows) => {
    body.replaceChildren();
    for (const { piece, nats, next } of rows) {
      const line = add(body, "tr");
      add(line, "th", { scope: "row" }, tokenName(piece, 24));
      add(line, "td", {}, nats === null ? "–" : nats.toFixed(2));
      add(line, "td", {}, nats === null ? "–" : `${tokenName(next.pieces[0])} ${next.p[0].toFixed(2)}`);
    }
  };
}
