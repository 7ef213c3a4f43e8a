// Paper is light whatever the screen is, and what is wider than its column is drawn smaller. paper.css has the rest.
const root = document.documentElement,
  WIDE = ".bd-article :is(mjx-container[display], table, svg, .d2lmini-panels)";
let theme = /** @type {string | undefined} */ (""),
  shrunk = /** @type {(HTMLElement | SVGElement)[]} */ ([]);
addEventListener("beforeprint", () => {
  theme = root.dataset.theme;
  root.dataset.theme = "light";
  for (const node of /** @type {NodeListOf<HTMLElement | SVGElement>} */ (document.querySelectorAll(WIDE))) {
    const room = node.parentElement?.clientWidth,
      width = Math.max(node.scrollWidth, node.getBoundingClientRect().width);
    if (!room || width <= room + 1) continue;
    node.style.zoom = String((0.99 * room) / width);
    shrunk.push(node);
  }
});
addEventListener("afterprint", () => {
  root.dataset.theme = theme;
  for (const node of shrunk.splice(0)) node.style.zoom = "";
});
