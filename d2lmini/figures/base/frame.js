// What every figure stands in.
import { button, keep } from "./controls.js";
import { ENDS } from "./keys.js";
import { add } from "./nodes.js";

// What to do, in the words of a touch screen where there is one: there keys are left out.
export function told(text) {
  if (!matchMedia("(pointer: coarse)").matches) return text;
  const words = { "point at": "touch", "pointed at": "touched", "click on": "tap", click: "tap" };
  return text.replace(/[;.]? by keyboard: .*/i, ".").replace(/\b(point(ed)? at|click( on)?)\b/gi, (found) => {
    const word = words[found.toLowerCase()];
    return /[A-Z]/.test(found) ? word[0].toUpperCase() + word.slice(1) : word;
  });
}

// The frame that a figure stands in: its title, a line that says what to do, and Reset, which draws it anew from the
// state it began with. Keys stop here: in JupyterLab, an arrow key on a slider would fold the chapter.
export function framed(render, title, hint) {
  return ({ model, el }) => {
    const before = new Map(); // what the reader changed, as it was
    const watched = {
      get: (key) => model.get(key),
      set(key, value) {
        if (!before.has(key)) before.set(key, model.get(key));
        model.set(key, value);
      },
      save_changes: () => model.save_changes(),
      on: (event, handler) => model.on(event, handler),
    };
    const head = add(el, "div", { class: "d2lmini-head" });
    add(head, "div", { class: "d2lmini-title" }, title);
    button(head, "Reset", () => {
      for (const [key, value] of before) keep(model, key, value);
      before.clear();
      start();
    });
    add(el, "p", { class: "d2lmini-hint" }, told(hint));
    let body = add(el, "div");
    function start() {
      const fresh = document.createElement("div");
      render({ model: watched, el: fresh });
      body.replaceWith(fresh);
      body = fresh;
    }
    start();
    el.classList.add("d2lmini-figure");
    el.addEventListener("keydown", (event) => {
      const own = event.target.matches("input:not([type=checkbox]), select, textarea"); // these know Home and End
      if (ENDS[event.key] && !event.ctrlKey && !own) event.preventDefault(); // else the page goes to its own
    });
    for (const kind of ["keydown", "keyup", "keypress"])
      el.addEventListener(kind, (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
      });
  };
}
