// In a chapter: which of its exercises are done, beside the links to them. tools/sphinx_ext/exercise_links.py
import { add } from "../../../d2lmini/figures/base/nodes.js";
import { all } from "./parts/page.js";
import { words } from "./parts/text.js";

const progress = window.bookProgress;
for (const place of all(document, ".exercise-done")) {
  const keys = words(place.dataset.parts);
  progress.listen(() => {
    const done = progress.count(({ passed, ticked }) => passed || ticked, keys);
    place.replaceChildren();
    if (!done) return;
    add(place, "span", { role: "img", "aria-label": "answered or ticked" }, "✓");
    if (done < keys.length) place.append(` ${done} of ${keys.length} parts`);
  });
}
