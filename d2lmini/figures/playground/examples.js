// What the model says to held-out examples, right and wrong, and the text that it writes.
import { add, columns, place, scroller } from "../base/index.js";

const WRONG = "color: var(--orange); text-decoration-thickness: 2px; text-decoration-skip-ink: none";

// Returns a function that shows answers, [{prompt, right, guess, given}], and a sample. The first three are arrays of
// letters, `guess` null where the model was not asked yet; `given`: which of them are not guessed.
/** @param {HTMLElement} parent */
export function playgroundExamples(parent) {
  const about = add(parent, "div", { style: "margin-top: 8px; font-size: 0.85rem" });
  const box = add(scroller(parent), "table", {
    class: "d2lmini-words",
    "data-part": "examples",
    "aria-label": "held-out examples",
  });
  const lines = columns(box, ["✓ ✗", "asked", "right answer", "the model's"]);
  const written = add(parent, "div", { "data-part": "sample" });
  add(written, "div", {}, "What it writes, drawn at temperature 0.8:");
  const sample = add(written, "div", {
    dir: "auto",
    style:
      "white-space: pre-wrap; overflow-wrap: anywhere; max-height: 9em; min-height: 4.5em; overflow-y: auto; " +
      "padding: 4px 6px; " +
      "border: 1px solid #8886; border-radius: 4px; font-family: ui-monospace, monospace",
    tabindex: 0,
    role: "group",
    "aria-label": "what the model writes",
  });
  const spell = (/** @type {string} */ letter) => letter.replace("\n", "↵").replace(" ", "␣");

  /** @param {{ answers: import("./fit.js").Shown[], text: string | null, settings: import("./run.js").Settings }} shown */
  return ({ answers, text, settings }) => {
    const way = settings.causal
      ? "each token is guessed after the right ones"
      : "all tokens are guessed at once, where a blank (_) stands";
    const pale = answers.some(({ given }) => given.some(Boolean)) ? " Pale ones are given." : "";
    about.textContent = `Held-out examples: ${way}. Wrong ones are underlined.${pale}`;
    about.style.display = box.style.display = answers.length ? "" : "none";
    written.style.display = text === null ? "none" : "";
    if (text !== null && sample.textContent !== text) sample.textContent = text;
    lines.replaceChildren();
    for (const { prompt, right, guess, given } of answers) {
      const line = add(lines, "tr"),
        whole = guess?.every((letter, i) => letter === right[i]);
      const sign = add(line, "th", { scope: "row" }, guess ? (whole ? "✓" : "✗") : "–");
      place(sign, { "aria-label": guess ? (whole ? "right" : "wrong") : "not asked yet" });
      for (const letters of [prompt, right]) add(line, "td", {}, letters.map(spell).join(""));
      const cell = add(line, "td");
      guess?.forEach((letter, i) => {
        if (given[i]) add(cell, "span", { style: "opacity: 0.45" }, spell(letter));
        else if (letter === right[i]) cell.append(spell(letter));
        else add(cell, "u", { style: WRONG }, spell(letter));
      });
    }
  };
}
