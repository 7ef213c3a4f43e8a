// What a reader can set in the playground: three groups of controls.
import { add, choice, place, slider, tick } from "../base/index.js";
import { SETTINGS } from "../live/playground_settings.js";

/**
 * @typedef {import("../live/playground_settings.js").Settings} Settings
 * @typedef {keyof Settings} Key
 * @typedef {Exclude<{ [key in Key]: Settings[key] extends number ? key : never }[Key], never>} NumberKey
 * @typedef {(value: number) => string} Say
 */

/** @type {Record<string, Record<string, string>>} */
const CONTROL_WORDS = {
  sizes: {
    copy: "length",
    reverse: "length",
    sort: "length",
    "look up": "pairs",
    recall: "length",
    add: "digits",
    text: "characters",
  },
  tasks: {
    copy: "copy letters",
    reverse: "reverse letters",
    sort: "sort letters",
    "look up": "look up values",
    recall: "recall a word from its pieces",
    add: "add two numbers",
    text: "next letter of a text",
  },
  texts: { shakespeare: "Shakespeare", names: "first names", own: "your own" },
  positions: { none: "none", learned: "learned", sines: "sines", rotary: "rotary", alibi: "ALiBi" },
  optimizers: { sgd: "SGD with momentum", adam: "Adam", adamw: "AdamW" },
};
/** @type {Record<string, number[]>} */
const CONTROL_VALUES = {
  rate: [-5, -4, -3, -2, -1, 0].flatMap((power) => [1, 2, 3, 5].map((n) => Number(`${n}e${power}`))).concat(10),
  warmup: [0, 5, 10, 20, 50, 100, 200, 500, 1000],
  decay: [0, 0.001, 0.01, 0.1, 1, 10],
  examples: [0, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000],
  clip: [0, 0.1, 0.25, 0.5, 1, 2, 5, 10, 100],
};
// side by side where there is room: the curve is to be seen with what moves it
const COLUMNS = "repeat(auto-fit, minmax(min(19rem, 100%), 1fr))";
const GROUPS = `display: grid; grid-template-columns: ${COLUMNS}; gap: 0 12px; align-items: start`;

// `change(key, value)` follows the reader. Returns a function that shows which controls the settings need.
/**
 * @param {HTMLElement} parent @param {Settings} settings
 * @param {{ change: (key: Key, value: any) => void, typed: (text: string) => void, own: string }} heard
 */
export function playgroundControls(parent, settings, { change, typed, own }) {
  const open = innerWidth > 600, // a phone has no room for all
    grid = add(parent, "div", open ? { style: GROUPS } : { class: "d2lmini-folds" }),
    rows = /** @type {Record<string, HTMLElement>} */ ({});
  const group = (/** @type {string} */ name, style = "") => {
    const fold = add(grid, "details", open ? { open: "", style } : { style });
    add(fold, "summary", { style: "min-height: 24px" }, name);
    return add(fold, "div", { class: "d2lmini-controls", style: "gap: 2px 18px; margin-bottom: 4px" });
  };
  const hold = (/** @type {string} */ key, /** @type {Element} */ input) => {
    rows[key] = /** @type {HTMLElement} */ (input.closest("label"));
    return input;
  };
  /** @param {HTMLElement} box @param {Key} key @param {string} label @param {Record<string, string>} options */
  const chosen = (box, key, label, options) => {
    const sure = (/** @type {string} */ text) =>
      SETTINGS[key].choices?.find((one) => String(one) === text) ?? Number(text);
    hold(
      key,
      choice(box, { label, options, value: settings[key] }, (text) => change(key, sure(text))),
    );
  };
  const numbers = (/** @type {unknown[]} */ all = []) => Object.fromEntries(all.map((one) => [one, String(one)]));
  /** @param {HTMLElement} box @param {NumberKey} key @param {string} label @param {Say} say */
  const ranged = (box, key, label, say = String) => {
    const { least, most } = /** @type {{ least: number, most: number }} */ (SETTINGS[key].range),
      about = { label, min: least, max: most, step: 1, value: settings[key], say };
    hold(
      key,
      slider(box, about, (value) => change(key, value)),
    );
  };
  // Values of a list, and the one that an address brought.
  /** @param {HTMLElement} box @param {NumberKey} key @param {string} label @param {Say} say */
  const listed = (box, key, label, say = String) => {
    const all = [...new Set([...CONTROL_VALUES[key], settings[key]])].sort((a, b) => a - b),
      about = { label, min: 0, max: all.length - 1, step: 1, value: all.indexOf(settings[key]) };
    hold(
      key,
      slider(box, { ...about, say: (i) => say(all[i]) }, (i) => change(key, all[i])),
    );
  };
  /** @param {HTMLElement} box @param {"backwards" | "causal" | "residual" | "ffn"} key @param {string} label */
  const ticked = (box, key, label) =>
    hold(
      key,
      tick(box, { label, value: settings[key] }, (value) => change(key, value)),
    );

  const task = group("Task");
  chosen(task, "task", "task", CONTROL_WORDS.tasks);
  chosen(task, "text", "text", CONTROL_WORDS.texts);
  ranged(task, "size", "length");
  ranged(task, "letters", "alphabet");
  ticked(task, "backwards", "last digit first");
  listed(task, "examples", "examples to learn from", (n) => (n ? n.toLocaleString("en") : "all"));
  ranged(task, "longer", "score this length too", (n) => (n ? String(n) : "none"));
  const pasted = add(task, "label", { class: "d2lmini-control", style: "flex: 1 1 100%; align-items: flex-start" });
  add(pasted, "span", {}, "your text");
  const field = add(pasted, "textarea", {
    rows: 3,
    "aria-label": "your text",
    spellcheck: "false",
    autocomplete: "off",
    dir: "auto",
    style: "flex: 1 1 auto; resize: vertical",
  });
  field.value = own;
  field.addEventListener("input", () => typed(field.value));

  const model = group("Model");
  chosen(model, "blocks", "blocks", numbers([1, 2, 3, 4]));
  chosen(model, "heads", "heads", numbers(SETTINGS.heads.choices));
  chosen(model, "width", "width", numbers(SETTINGS.width.choices));
  chosen(model, "positions", "positions", CONTROL_WORDS.positions);
  chosen(model, "norm", "norm", { before: "before", after: "after", none: "none" });
  ticked(model, "causal", "causal");
  ticked(model, "residual", "residual connections");
  ticked(model, "ffn", "feed-forward");

  const training = group("Training", "grid-column: 1 / -1");
  listed(training, "rate", "rate");
  listed(training, "warmup", "warm-up", (n) => (n ? `${n} steps` : "none"));
  listed(training, "clip", "clip gradients", (n) => (n ? String(n) : "no"));
  chosen(training, "batch", "batch", numbers(SETTINGS.batch.choices));
  chosen(training, "optimizer", "optimiser", CONTROL_WORDS.optimizers);
  listed(training, "decay", "weight decay");
  ranged(model, "seed", "seed");

  return (/** @type {Settings} */ now) => {
    const written = now.task === "text";
    const needed = {
      text: written,
      letters: !written && now.task !== "add",
      examples: !written,
      backwards: now.task === "add",
      causal: !written,
      decay: now.optimizer === "adamw",
    };
    for (const [key, holds] of Object.entries(needed)) rows[key].style.display = holds ? "" : "none";
    pasted.style.display = written && now.text === "own" ? "" : "none";
    const label = CONTROL_WORDS.sizes[now.task];
    const [name, input] = rows.size.children;
    name.textContent = label;
    place(input, { "aria-label": label });
  };
}
