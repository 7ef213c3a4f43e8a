// What a reader sets: sliders, menus, buttons, and the word to the model that it was set.
import { add, place } from "./nodes.js";

// Tell the model what the reader did; as an anywidget that reaches Python.
export function keep(model, key, value) {
  model.set(key, value);
  model.save_changes();
}

/**
 * Change a state, and tell the model what of it is new.
 * @param {{ set: (key: string, value: unknown) => void, save_changes: () => void }} model
 * @param {Record<string, any>} state
 * @param {object} changes
 */
export function keepAll(model, state, changes) {
  for (const [key, value] of Object.entries(changes))
    if (state[key] !== value) {
      state[key] = value;
      keep(model, key, value);
    }
}

/**
 * A labelled range input with its value beside it. `scale: "log"` walks powers of ten; `say` writes the value.
 * @param {Element} parent
 * @param {{ label: string, min: number, max: number, step: number, value: number, scale?: string, digits?: number,
 *   say?: (value: number) => string }} settings
 * @param {(value: number) => void} onInput
 */
export function slider(
  parent,
  { label, min, max, step, value, scale, digits = 2, say = (x) => x.toFixed(digits) },
  onInput,
) {
  const log = scale === "log";
  const inner = (/** @type {number} */ x) => (log ? Math.log10(x) : x),
    outer = (/** @type {number} */ x) => (log ? 10 ** x : x);
  const row = add(parent, "label", { class: "d2lmini-control" });
  add(row, "span", {}, label);
  const input = add(row, "input", { type: "range", min: inner(min), max: inner(max), step, "aria-label": label });
  const shown = add(row, "output");
  const show = () => {
    const x = outer(Number(input.value));
    shown.textContent = say(x);
    input.setAttribute("aria-valuetext", shown.textContent);
    return x;
  };
  input.value = String(inner(value));
  show();
  input.addEventListener("input", () => onInput(show()));
  return input;
}

/**
 * @param {Element} parent
 * @param {string} text
 * @param {(event: MouseEvent) => void} act
 * @param {Record<string, unknown>} [attributes]
 */
export function button(parent, text, act, attributes = {}) {
  const node = add(parent, "button", { type: "button", ...attributes }, text);
  node.addEventListener("click", act);
  return node;
}

/**
 * A labelled menu. `options`: values and their texts; a Map where a value may be a whole number, which an object would
 * put first.
 * @param {Element} parent
 * @param {{ label: string, options: Map<unknown, string> | Record<string, string>, value: unknown }} settings
 * @param {(value: string) => void} onInput
 */
export function choice(parent, { label, options, value }, onInput) {
  const row = add(parent, "label", { class: "d2lmini-control" });
  add(row, "span", {}, label);
  const select = add(row, "select", { "aria-label": label });
  for (const [key, text] of options instanceof Map ? options : Object.entries(options))
    add(select, "option", { value: key }, text);
  select.value = String(value);
  select.addEventListener("input", () => onInput(select.value));
  return select;
}

/**
 * A labelled checkbox.
 * @param {Element} parent
 * @param {{ label: string, value: boolean }} settings
 * @param {(value: boolean) => void} onInput
 */
export function tick(parent, { label, value }, onInput) {
  const row = add(parent, "label", { class: "d2lmini-control" });
  const input = add(row, "input", { type: "checkbox" });
  add(row, "span", {}, label);
  input.checked = value;
  input.addEventListener("input", () => onInput(input.checked));
  return input;
}

/**
 * Steps from `min` to `max`: back, next, to the end, and a slider. `go(step)` goes there, `end(max)` moves the end.
 * @param {Element} parent
 * @param {{ label: string, min?: number, max: number, value: number }} settings
 * @param {(step: number) => void} onStep
 */
export function stepper(parent, { label, min = 0, max, value }, onStep) {
  const at = () => Number(bar.value);
  const go = (/** @type {number | string} */ step) => {
    bar.value = String(step);
    bar.dispatchEvent(new Event("input"));
  };
  const back = button(parent, "← back", () => go(at() - 1), { "aria-label": `${label}: back` });
  const forth = button(parent, "next →", () => go(at() + 1), { "aria-label": `${label}: next` });
  const last = button(parent, "to the end", () => go(bar.max), { "aria-label": `${label}: to the end` });
  const bar = slider(parent, { label, min, max, step: 1, value, digits: 0 }, (step) => {
    mark();
    onStep(step);
  });
  // not disabled: a button that is would lose the focus
  function mark() {
    place(back, { "aria-disabled": at() <= min });
    for (const node of [forth, last]) place(node, { "aria-disabled": at() >= Number(bar.max) });
  }
  mark();
  return {
    go,
    end(/** @type {number} */ to) {
      bar.max = String(to);
    },
  };
}
