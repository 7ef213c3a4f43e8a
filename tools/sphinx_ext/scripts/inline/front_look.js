// The numbers of the front page's code follow the figure beside it.
import { all, one } from "../parts/page.js";

const look = /** @type {HTMLElement} */ (document.currentScript?.parentElement);
const says = (/** @type {number} */ number) => {
  const text = String(Number(number.toFixed(2)));
  return text.includes(".") ? text : text + ".0";
};
one(look, "d2lmini-query-plane").addEventListener("d2lmini-change", (event) => {
  const { query, key_points, temperature, score } = /** @type {CustomEvent} */ (event).detail;
  const now = { query, keys: key_points.flat(), temperature: [temperature] };
  for (const node of all(look, "[data-number]")) {
    const [name, i] = String(node.dataset.number).split(".");
    if (name in now) node.textContent = says(now[name][i]);
  }
  const way = score === "dot" ? "query @ keys.T" : "-(keys - query).square().sum(-1) / 2";
  one(look, "[data-score]").textContent = way;
});
one(look, "[data-follows]").hidden = false;
