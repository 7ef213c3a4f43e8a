// The numbers of the front page's code follow the figure beside it.
(() => {
  const look = document.currentScript.closest(".front-look"),
    says = (number) => {
      const text = String(Number(number.toFixed(2)));
      return text.includes(".") ? text : text + ".0";
    };
  look.querySelector("d2lmini-query-plane").addEventListener("d2lmini-change", ({ detail }) => {
    const now = { query: detail.query, keys: detail.key_points.flat(), temperature: [detail.temperature] };
    for (const node of look.querySelectorAll("[data-number]")) {
      const [name, i] = node.dataset.number.split(".");
      if (name in now) node.textContent = says(now[name][i]);
    }
    const dot = detail.score === "dot";
    look.querySelector("[data-score]").textContent = dot ? "query @ keys.T" : "-(keys - query).square().sum(-1) / 2";
  });
  look.querySelector("[data-follows]").hidden = false;
})();
