// A formula is a stop of the Tab key only where it is wider than its column, and one must scroll to read it.
addEventListener("load", () => {
  window.MathJax?.startup?.promise?.then(() => {
    const formulas = document.querySelectorAll("mjx-container[display]");
    const look = () => {
      for (const node of formulas) {
        if (node.scrollWidth > node.clientWidth) node.tabIndex = 0;
        else node.removeAttribute("tabindex");
      }
    };
    look();
    new ResizeObserver(look).observe(document.body); // the window, or a fold that opened
  });
});
