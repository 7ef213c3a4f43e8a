// A text token by token, of which one is chosen.
import { add, onArrow, place } from "../base/index.js";
import { spanBeside, spanShade } from "../page/spans.js";

// `choose(i)` follows a press or the arrow keys. Returns a function that shows tokens {name, special, title}: the
// first `given` are the reader's, `shade` has a share from 0 to 1 of each, `colour` is that of the shade.
export function tokenBox(parent, { label, choose, colour = "--blue" }) {
  const box = add(parent, "div", {
    role: "listbox",
    tabindex: 0,
    dir: "auto",
    "aria-label": `${label}: arrow keys choose a token`,
    style:
      "max-height: 15em; min-height: 3em; overflow-y: auto; white-space: pre-wrap; overflow-wrap: anywhere; " +
      "padding: 6px 8px; border: 1px solid #8886; border-radius: 4px; cursor: pointer; position: relative; " +
      "line-height: 1.65",
  });
  const prefix = `d2lmini-token-${Math.random().toString(36).slice(2)}`,
    nodes = /** @type {HTMLCollectionOf<HTMLElement>} */ (box.children);
  let chosen = 0;
  box.addEventListener("click", ({ target }) => {
    const { i } = /** @type {HTMLElement} */ (target).dataset;
    if (i !== undefined) choose(Number(i));
  });
  onArrow(box, (down, right) => {
    if (!nodes.length) return;
    const to = down ? spanBeside(nodes, chosen, down) : chosen + right;
    choose(Math.min(nodes.length - 1, Math.max(0, to)));
    nodes[chosen]?.scrollIntoView({ block: "nearest" });
  });

  /**
   * @param {{ tokens: { name: string, special?: boolean | null, title?: string }[], given?: number, chosen?: number,
   *   shade?: ArrayLike<number> | null, follow?: boolean }} text
   */
  const show = ({ tokens, given = 0, chosen: now, shade = null, follow = false }) => {
    chosen = Math.max(0, Math.min(now ?? tokens.length - 1, tokens.length - 1));
    while (nodes.length > tokens.length) nodes[tokens.length].remove();
    tokens.forEach(({ name, special, title }, j) => {
      const node = nodes[j] ?? add(box, "span", { role: "option", "data-i": j, id: `${prefix}-${j}` }),
        text = name.replaceAll("\n", "↵\n") || "·",
        share = shade?.[j] ?? 0,
        look = [text, share.toFixed(6), j === chosen, j < given, title].join(" ");
      if (node.dataset.look === look) return;
      if (node.textContent !== text) node.textContent = text;
      Object.assign(node.dataset, { look, share: share.toFixed(6) });
      place(node, { "aria-selected": j === chosen });
      if (title) place(node, { title, "aria-label": `${text}: ${title}` });
      else for (const key of ["title", "aria-label"]) node.removeAttribute(key);
      Object.assign(node.style, {
        background: spanShade(share, colour) || (j % 2 ? "#8882" : ""),
        outline: j === chosen ? "2px solid var(--orange)" : "",
        opacity: j < given ? 0.8 : "",
        fontFamily: special ? "ui-monospace, monospace" : "",
        fontSize: special ? "max(11px, 0.8em)" : "",
        borderRadius: "2px",
      });
    });
    if (tokens.length) place(box, { "aria-activedescendant": nodes[chosen].id });
    else box.removeAttribute("aria-activedescendant");
    if (follow) box.scrollTop = box.scrollHeight;
  };
  return show;
}
