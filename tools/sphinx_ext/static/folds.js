// Folds are <details>, made by tools/sphinx_ext/folds.py; answers are what predictions.py marks. What HTML does not do:
// a link opens what it leads into, an answer waits for a prediction, one switch opens all, paper shows all.
(() => {
  const root = document.documentElement,
    article = document.querySelector("article");
  if (!article) return;
  root.dataset.folds = "ready"; // see EARLY in folds.py
  const EVERYTHING = "d2lmini:open everything";
  const recall = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  const keep = (key, value) => {
    try {
      if (value === null) localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch {
      /* storage is blocked: it is kept as long as the page is open */
    }
  };

  const toggle = article.querySelector(".fold-switch input"); // exercises have none
  const folds = toggle ? [...article.querySelectorAll("details.fold, details.hide")] : [];
  let everything = false;

  // An answer is hidden "until found": the browser's search in the page looks into it.
  // `reveal`: answer -> how to show it.
  const reveal = new Map(),
    draw = [];
  for (const answer of article.querySelectorAll(".predict-answer")) {
    const place = answer.previousElementSibling,
      key = `d2lmini:${place.dataset.question}`;
    const form = place.querySelector("form"),
      status = place.querySelector("[role=status]");
    const [show, forget] = place.querySelectorAll("button[type=button]");
    let said = recall(key),
      shown = false;

    const render = () => {
      const open = shown || everything || said !== null;
      if (open) answer.removeAttribute("hidden");
      else answer.setAttribute("hidden", "onbeforematch" in answer ? "until-found" : "");
      form.hidden = open;
      forget.hidden = said === null;
      status.replaceChildren();
      if (said !== null) {
        const what = document.createElement("strong");
        what.textContent = said;
        status.append("You predicted ", what);
      }
      place.hidden = open && said === null;
    };
    const commit = (to) => {
      said = to;
      keep(key, said);
      render();
    };

    answer.tabIndex = -1; // the focus goes there when the form goes away
    // found by a search: the browser shows it, and gives up on the fold around it if we do so first
    answer.addEventListener("beforematch", () => {
      shown = true;
      setTimeout(render);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      commit(new FormData(form).get("said").trim());
      answer.focus({ preventScroll: true });
    });
    show.addEventListener("click", () => {
      shown = true;
      render();
      answer.focus({ preventScroll: true });
    });
    forget.addEventListener("click", () => {
      shown = false;
      form.reset();
      commit(null);
      (everything ? answer : form.querySelector("input")).focus({ preventScroll: true });
    });
    reveal.set(answer, () => {
      shown = true;
      render();
    });
    draw.push(render);
  }

  function openAll(on) {
    everything = on;
    root.classList.toggle("all-open", on);
    for (const fold of folds) fold.open = on;
    for (const render of draw) render();
  }
  if (toggle) {
    toggle.addEventListener("change", () => {
      keep(EVERYTHING, toggle.checked ? "yes" : null);
      openAll(toggle.checked);
    });
    toggle.checked = recall(EVERYTHING) !== null;
  }
  openAll(toggle?.checked ?? false);
  addEventListener("pageshow", (event) => {
    // "back" shows a page as it was left; the switch may have been used since
    if (event.persisted && toggle && toggle.checked !== (recall(EVERYTHING) !== null)) toggle.click();
  });

  // A link, the address bar or a search leads into what is folded: open all that it is in.
  function open(node) {
    for (let up = node; up && up !== article; up = up.parentElement) {
      const fold = up.matches("section.fold") ? up.querySelector(":scope > details") : up; // the heading's own link
      if (fold.localName === "details") fold.open = true;
      reveal.get(up)?.();
    }
  }
  function follow() {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      /* as it is */
    }
    const node = id && document.getElementById(id);
    if (!node || !article.contains(node)) return;
    open(node);
    node.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    // the same link once more: the address does not change
    const link = event.target.closest?.("a[href*='#']");
    if (link && link.href === location.href) setTimeout(follow);
  });
  follow();

  // After a search. The theme loads searchtools.js on each page, and Sphinx then takes every page for that of results
  // and marks no words; so mark them here, and open what they are in.
  addEventListener("load", () => {
    try {
      if (!document.querySelector("#search-results")) window.SphinxHighlight.highlightSearchWords();
    } catch {
      /* storage is blocked */
    }
    setTimeout(() => {
      const words = [...article.querySelectorAll(".highlighted")];
      for (const word of words) open(word);
      if (location.hash) follow();
      else words[0]?.scrollIntoView({ block: "center" });
    }, 100);
  });

  // Paper: folds.css does it where the browser knows ::details-content.
  let shut = [];
  addEventListener("beforeprint", () => {
    shut = [...article.querySelectorAll("details:not([open])")];
    for (const fold of shut) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of shut.splice(0)) fold.open = false;
  });
})();
