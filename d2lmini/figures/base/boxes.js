// Boxes: what scrolls, what is shown one at a time on a phone, what is folded there.
import { button } from "./controls.js";
import { add, place } from "./nodes.js";

// A box for what may be too wide (or too high, if its style limits that): it scrolls, and while there is more to see,
// the keyboard reaches it and an arrow says where.
export function scroller(parent) {
  const around = add(parent, "div", { class: "d2lmini-scrolls" }),
    box = add(around, "div", { class: "d2lmini-scroll" }),
    cue = add(around, "span", { class: "d2lmini-cue", "aria-hidden": true });
  const look = () => {
    const wide = box.scrollWidth - box.clientWidth,
      high = box.scrollHeight - box.clientHeight;
    if (wide > 1 || high > 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    cue.textContent = wide - box.scrollLeft > 1 ? "→" : high - box.scrollTop > 1 ? "↓" : "";
  };
  const observer = new ResizeObserver(look);
  box.addEventListener("scroll", look);
  observer.observe(box);
  queueMicrotask(() => {
    for (const child of box.children) observer.observe(child);
  });
  return box;
}

// Views of one thing: side by side where there is room, on a phone one at a time, chosen by a row of buttons. `names`:
// of each its short name. Returns: a `figure` for each, with the `row` and with `show`, which takes a number.
export function views(parent, label, names) {
  const row = add(parent, "div", { class: "d2lmini-views", role: "group", "aria-label": label }),
    panels = add(parent, "div", { class: "d2lmini-panels" });
  const show = (shown) =>
    names.forEach((_, i) => {
      place(buttons[i], { "aria-pressed": i === shown });
      boxes[i].classList.toggle("d2lmini-other", i !== shown);
    });
  const buttons = names.map((name, i) => button(row, name, () => show(i))),
    boxes = names.map(() => add(panels, "figure"));
  show(0);
  return Object.assign(boxes, { row, show });
}

// What is folded on a phone, where there is no room for all, under a line that says what it is.
export function fold(parent, text) {
  const box = add(parent, "details", innerWidth > 600 ? { open: "" } : {});
  add(box, "summary", {}, text);
  return box;
}

/**
 * The head of a table, with a name over each column (null: a corner without one), and its body, which is returned.
 * @param {HTMLTableElement} table
 * @param {(string | null)[]} names
 */
export function columns(table, names) {
  const head = add(add(table, "thead"), "tr");
  for (const name of names)
    if (name === null) add(head, "td");
    else add(head, "th", { scope: "col" }, name);
  return add(table, "tbody");
}
