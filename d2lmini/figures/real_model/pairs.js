// Two prompts side by side: the same question without examples, and with them.
import { add, button, choice } from "../base/index.js";
import { LIVE, newestQuestion } from "../page/host.js";
import { announcer } from "../page/model_box.js";
import { REAL_MODEL } from "./load.js";
import { offNames, realModelSentence, realModelUnread } from "./text.js";

const PAIR_TOKENS = 24;

// `presets`: {name: [prompt, prompt with examples]}; `off()`: the heads and blocks that are switched off.
export function realModelPairs(parent, { lost, off, presets }) {
  const question = newestQuestion(parent),
    names = Object.keys(presets);
  let writing = false;
  const controls = add(parent, "div", { class: "d2lmini-controls", style: "margin: 4px 0" });
  choice(controls, { label: "question", options: Object.fromEntries(names.map((n) => [n, n])), value: names[0] }, fill);
  const press = button(controls, "Ask both", () => (writing ? stop() : ask()));
  const say = announcer(parent),
    panels = add(parent, "div", { class: "d2lmini-panels" });
  const sides = ["without examples", "with examples"].map((label) => {
    const box = add(panels, "div"),
      typing = add(box, "label", { style: "display: block" });
    add(typing, "span", { style: "display: block" }, label);
    const field = add(typing, "textarea", { rows: 6, dir: "auto", style: "width: 100%; resize: vertical" });
    const answer = add(box, "p", {
      dir: "auto",
      style: "white-space: pre-wrap; min-height: 3em; margin: 4px 0; overflow-wrap: anywhere",
      "aria-label": `answer ${label}`,
      role: "group",
    });
    return { label, field, answer };
  });
  fill(names[0]);

  function fill(name) {
    sides.forEach(({ field, answer }, i) => {
      field.value = presets[name][i];
      answer.textContent = "";
    });
    say("");
  }

  async function ask() {
    for (const { label, field } of sides) {
      const wrong = realModelUnread(field.value);
      if (wrong) return say(`The prompt ${label}: ${wrong[0].toLowerCase()}${wrong.slice(1)}`);
    }
    for (const { answer } of sides) answer.textContent = "";
    const without = off();
    writing = true;
    press.textContent = "Stop";
    say("Writing …");
    try {
      const done = await question.asked(async (asked) => {
        for (const { field, answer } of sides) {
          const options = { text: field.value, count: PAIR_TOKENS, filters: { temperature: 0 }, top: 1, off: without };
          const told = await asked(REAL_MODEL, "real_write", options, (step) => {
            if (step.written && step.next) answer.textContent = (answer.textContent + step.text).trimStart();
          });
          if (!told) return null;
        }
        return true;
      });
      if (!done) return;
      const lines = sides.map(({ label, answer }) => `First line ${label}: “${firstLine(answer.textContent)}”.`);
      say(lines.join(" ") + (without.length ? ` Asked${offNames(without, " ")}.` : ""));
    } catch (/** @type {any} */ error) {
      if (LIVE.has(REAL_MODEL)) say(realModelSentence(error.message));
      else lost(error);
    }
    end();
  }

  const firstLine = (text) => text.trim().split("\n")[0];

  function end() {
    writing = false;
    press.textContent = "Ask both";
  }

  function stop() {
    question.stop();
    end();
    say("Stopped.");
  }
}
