// Runs before anything is drawn, so that nothing jumps; if folds.js does not come, the page is as without JavaScript.
import { recall } from "../parts/storage.js";

const { classList, dataset } = document.documentElement;
const everything = recall("open everything");
classList.add("folds-on");
if (everything) classList.add("all-open");
window.awaitPrediction = (answer, name) => {
  if (!everything && !recall(name)) answer.setAttribute("hidden", "onbeforematch" in answer ? "until-found" : "");
};
addEventListener("load", () => {
  if (dataset.folds) return;
  classList.remove("folds-on", "all-open");
  for (const answer of document.querySelectorAll(".predict-answer")) answer.removeAttribute("hidden");
});
