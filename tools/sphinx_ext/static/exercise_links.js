// In a chapter: which of its exercises are done, beside the links to them. tools/sphinx_ext/exercise_links.py
(() => {
  const progress = window.bookProgress;
  for (const place of document.querySelectorAll(".exercise-done")) {
    const keys = place.dataset.parts.split(" ");
    progress.listen(() => {
      const done = keys.map(progress.of).filter((entry) => entry.passed || entry.ticked).length,
        mark = document.createElement("span");
      place.replaceChildren();
      if (!done) return;
      mark.textContent = "✓";
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", "answered or ticked");
      place.append(mark, done < keys.length ? ` ${done} of ${keys.length} parts` : "");
    });
  }
})();
