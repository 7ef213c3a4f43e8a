// A formula is a stop of the Tab key only where it is wider than its column, and one must scroll to read it.
import { all } from "./parts/page.js";

addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const formulas = all(document, "mjx-container[display]");
  new ResizeObserver(() => {
    for (const node of formulas) {
      if (node.scrollWidth > node.clientWidth) node.tabIndex = 0;
      else node.removeAttribute("tabindex");
    }
  }).observe(document.body); // at once, and when the window changes or a fold opens
});
