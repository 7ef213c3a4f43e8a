// A real language model in the page: loaded when a reader asks; before that, and where it cannot be, what was recorded.
import { add } from "../base/index.js";
import { realModelLoad } from "./load.js";
import { realModelLook } from "./look.js";
import { realModelLosses } from "./losses.js";
import { realModelPairs } from "./pairs.js";
import { realModelRecorded } from "./recorded.js";
import { realModelWrite } from "./write.js";

function render({ model, el }) {
  const told = model.get("told"),
    recorded = model.get("recorded"),
    panelled = model.get("panel"),
    { blocks, heads } = told,
    inBook = document.documentElement.dataset.content_root !== undefined;
  const loading = add(el, "div"),
    body = add(el, "div", { class: "d2lmini-live" });
  let load = /** @type {ReturnType<typeof realModelLoad> | null} */ (null),
    shown = false;
  const before = add(body, "div");
  add(
    before,
    "p",
    { style: "margin: 6px 0" },
    "Recorded answers, with the likeliest token at each step. The page rounds more than the record did, " +
      "so the loaded model may continue a long answer differently.",
  );
  realModelRecorded(before, recorded);
  const lost = (error) => load?.lost(`The model has stopped: ${error.message}.`);
  if (inBook) load = realModelLoad(loading, told, ready);
  else {
    const where = "In the built book, on the page “A real model”, it writes what you ask: there it can be loaded.";
    add(loading, "p", { style: "margin: 0 0 6px" }, where);
  }
  licence(el);

  function ready() {
    if (shown) return; // it was lost and is back: everything is still there
    shown = true;
    body.replaceChildren();
    const lookInto = (parent, writer) =>
      realModelLook(parent, writer, { blocks, heads, first: recorded.heads.heads[0], panelled });
    const writer = realModelWrite(add(body, "div"), { lost, lookInto });
    if (panelled) {
      const more = add(
        body,
        "p",
        { style: "margin: 6px 0 0" },
        "Losses, blocks and prompts side by side: on the page ",
      );
      add(more, "a", { href: `${document.documentElement.dataset.content_root}real_model.html` }, "A real model");
    } else {
      section("Loss of each token of a text", (parent) => realModelLosses(parent, { lost, off: writer.off }));
      section("Two prompts, with and without examples", (parent) =>
        realModelPairs(parent, { lost, off: writer.off, presets: recorded.pairs }),
      );
    }
    if (el.contains(document.activeElement) || document.activeElement === document.body) writer.focus();
  }

  // A folded part that is made when it is first opened.
  function section(title, make) {
    const fold = add(body, "details", { style: "margin-top: 6px" });
    add(fold, "summary", { style: "min-height: 24px" }, title);
    const inside = add(fold, "div");
    fold.addEventListener("toggle", () => {
      if (fold.open && !inside.childElementCount) make(inside);
    });
  }

  function licence(parent) {
    const fold = add(parent, "details", { style: "margin-top: 6px" });
    add(fold, "summary", { style: "min-height: 24px" }, "Whose model this is, and its licence");
    const line = add(fold, "p", { style: "margin: 0" }, `${told.notice} `);
    if (!inBook || told.missing) return;
    const root = document.documentElement.dataset.content_root;
    add(line, "a", { href: `${root}_static/real_model/LICENSE.txt` }, "The licence");
  }
}

export default { render };
