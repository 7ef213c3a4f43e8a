// Folds are <details>, made by tools/sphinx_ext/folds.py; answers are what predictions.py marks. What HTML does not do:
// a link opens what it leads into, an answer waits for a prediction, one switch opens all, paper shows all.
import { all } from "./parts/page.js";
import { prediction } from "./parts/prediction.js";
import { keep, recall } from "./parts/storage.js";

const EVERYTHING = "open everything";
const root = document.documentElement;

// The switch, which exercises do not have, and the answers that it shows too. Returns: answer -> how to show it.
function answers(/** @type {HTMLElement} */ article) {
  const [toggle] = all(article, ".fold-switch input", HTMLInputElement);
  const folds = toggle ? all(article, "details.fold, details.hide", HTMLDetailsElement) : [];
  const kept = () => Boolean(recall(EVERYTHING));
  let everything = false;
  const places = all(article, ".predict-answer"),
    predictions = places.map((answer) => prediction(answer, () => everything));

  function openAll(/** @type {boolean} */ on) {
    everything = on;
    root.classList.toggle("all-open", on);
    for (const fold of folds) fold.open = on;
    for (const { render } of predictions) render();
  }
  toggle?.addEventListener("change", () => {
    keep(EVERYTHING, toggle.checked ? "yes" : "");
    openAll(toggle.checked);
  });
  if (toggle) toggle.checked = kept();
  openAll(toggle?.checked ?? false);
  addEventListener("pageshow", (event) => {
    // "back" shows a page as it was left; the switch may have been used since
    if (event.persisted && toggle && toggle.checked !== kept()) toggle.click();
  });
  return new Map(places.map((answer, i) => [answer, predictions[i].reveal]));
}

// A link, the address bar or a search leads into what is folded: open all that it is in.
function leads(/** @type {HTMLElement} */ article) {
  const reveal = answers(article);
  function open(/** @type {Element} */ node) {
    for (let up = node; up !== article && up.parentElement; up = up.parentElement) {
      const fold = up.matches("section.fold") ? up.querySelector(":scope > details") : up; // the heading's own link
      if (fold instanceof HTMLDetailsElement) fold.open = true;
      reveal.get(/** @type {HTMLElement} */ (up))?.();
    }
  }
  function follow() {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      /* as it is */
    }
    const node = document.getElementById(id);
    if (!node || !article.contains(node)) return;
    open(node);
    node.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  document.addEventListener("click", ({ target }) => {
    // the same link once more: the address does not change
    const link = target instanceof Element && target.closest("a[href*='#']");
    if (link instanceof HTMLAnchorElement && link.href === location.href) setTimeout(follow);
  });
  follow();

  // After a search Sphinx marks its words: open what they are in.
  addEventListener("load", () =>
    setTimeout(() => {
      const words = all(article, ".highlighted");
      words.forEach(open);
      if (location.hash) follow();
      else words[0]?.scrollIntoView({ block: "center" });
    }, 100),
  );
}

// Paper: folds.css does it where the browser knows ::details-content.
function print(/** @type {HTMLElement} */ article) {
  let shut = /** @type {HTMLDetailsElement[]} */ ([]);
  addEventListener("beforeprint", () => {
    shut = all(article, "details:not([open])", HTMLDetailsElement);
    for (const fold of shut) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of shut.splice(0)) fold.open = false;
  });
}

const article = document.querySelector("article"); // the search page has none
if (article) {
  root.dataset.folds = "ready"; // see inline/folds_early.js
  leads(article);
  print(article);
}
