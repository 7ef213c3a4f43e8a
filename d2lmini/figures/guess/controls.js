// What a reader does with a sentence: types one, chooses what a press does, and changes a piece.
import { add, button, place } from "../base/index.js";

// A field with a button. Returns the field and its name.
export function typing(parent, label, text, act) {
  const form = add(parent, "form", { class: "d2lmini-control", style: "flex: 0 1 26rem" });
  const around = add(form, "label", { class: "d2lmini-control", style: "flex: 1 1 auto; min-width: 0" });
  const name = add(around, "span", {}, label);
  const input = add(around, "input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
  input.style.cssText = "flex: 1 1 4rem; width: 4rem";
  add(form, "button", { type: "submit", style: "flex: none" }, text);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(input.value);
  });
  return { input, name };
}

// What choosing a piece does. Returns a function that marks a mode.
export function modes(parent, chosen) {
  const box = add(add(parent, "div", { class: "d2lmini-controls" }), "div", {
    role: "group",
    "aria-label": "what choosing a piece does",
  });
  add(box, "span", {}, "Choose a piece to ");
  const hide = button(box, "hide it", () => chosen("hide"));
  add(box, "span", {}, " ");
  const change = button(box, "change it", () => chosen("change"));
  return (mode) => {
    place(hide, { "aria-pressed": mode === "hide" });
    place(change, { "aria-pressed": mode === "change" });
  };
}

// What may stand in the place of a piece. Returns {offered, show}: a box for pieces, and how to show it for one.
export function changing(parent, { type, hide, undo }) {
  const box = add(parent, "div", { class: "d2lmini-controls", role: "group" });
  const { name } = typing(box, "another", "put it there", type);
  const offered = add(box, "span", { style: "display: inline-flex; flex-wrap: wrap; gap: 4px" });
  button(box, "hide it as well", hide);
  button(box, "as it was", undo);
  return {
    offered,
    show(shown, piece) {
      box.style.display = shown ? "" : "none";
      place(box, { "aria-label": `change ${piece}` });
      name.textContent = `in place of “${piece}”`;
    },
  };
}
