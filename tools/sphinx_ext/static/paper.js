// Paper is light whatever the screen is, and what is wider than its column is drawn smaller. paper.css has the rest.
(() => {
  const root = document.documentElement;
  let theme,
    shrunk = [];
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    const article = document.querySelector(".bd-article");
    for (const node of article?.querySelectorAll("mjx-container[display], table, svg, .d2lmini-panels") ?? []) {
      const room = node.parentElement.clientWidth,
        width = Math.max(node.scrollWidth, node.getBoundingClientRect().width);
      if (!room || width <= room + 1) continue;
      node.style.zoom = (0.99 * room) / width;
      shrunk.push(node);
    }
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = theme;
    for (const node of shrunk.splice(0)) node.style.zoom = "";
  });
})();
