// The page's side: a text, letter by letter, that is looked at and taken back.
import { add, onArrow, place } from "../base/index.js";
import { spanBeside, spanShade } from "./spans.js";

// A list of letters. A pointer or the arrow keys `point` at one (null: at none), a click or Enter does `goOn(i)`; a
// tap points first. Returns a function that shows a text: ids, of which the first `given` are the reader's, those
// before `first` are not read by the model, and `weights` are the shares of those from `first` to the chosen one, `i`.
export function letterBox(parent, names, { point, goOn }) {
  const box = add(parent, "div", {
    role: "listbox",
    tabindex: 0,
    "aria-label": "the text: arrow keys look at a letter, Enter goes on from it",
    style:
      "height: 9em; overflow-y: auto; white-space: pre-wrap; overflow-wrap: anywhere; padding: 4px 6px; " +
      "border: 1px solid #8886; border-radius: 4px; font-family: ui-monospace, monospace; cursor: pointer; " +
      "position: relative",
  });
  const prefix = `d2lmini-letter-${Math.random().toString(36).slice(2)}`,
    nodes = /** @type {HTMLCollectionOf<HTMLElement>} */ (box.children);
  let chosen = 0,
    finger = false;

  const letterOf = ({ target }) => (target.dataset.i === undefined ? null : Number(target.dataset.i));
  box.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch" && letterOf(event) !== null) point(letterOf(event));
  });
  box.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") point(null);
  });
  box.addEventListener("pointerdown", (event) => {
    finger = event.pointerType === "touch";
  });
  box.addEventListener("click", (event) => {
    const i = letterOf(event);
    if (i === null) return;
    if (finger && i !== chosen) point(i);
    else goOn(i);
  });
  onArrow(box, (down, right) => {
    point(Math.min(nodes.length - 1, Math.max(0, down ? spanBeside(nodes, chosen, down) : chosen + right)));
    nodes[chosen].scrollIntoView({ block: "nearest" });
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") point(null);
    if (event.key !== "Enter") return;
    event.preventDefault();
    goOn(chosen);
  });

  return ({ text, given, first, i, weights, follow }) => {
    chosen = i;
    while (nodes.length > text.length) nodes[text.length].remove();
    text.forEach((id, j) => {
      const node = nodes[j] ?? add(box, "span", { role: "option", "data-i": j, id: `${prefix}-${j}` }),
        name = names[id] === "\n" ? "↵\n" : names[id],
        weight = weights?.[j - first] ?? 0,
        look = [weight.toFixed(6), j === i, j < first, j < given].join(" ");
      if (node.textContent !== name) node.textContent = name;
      if (node.dataset.look === look) return;
      Object.assign(node.dataset, { look, weight: weight.toFixed(6), read: j >= first });
      place(node, { "aria-selected": j === i });
      Object.assign(node.style, {
        background: spanShade(weight),
        outline: j === i ? "2px solid var(--orange)" : "",
        opacity: j < first ? 0.55 : "",
        fontWeight: j < given ? 700 : "",
      });
    });
    place(box, { "aria-activedescendant": nodes[i].id });
    if (follow) box.scrollTop = box.scrollHeight;
  };
}
