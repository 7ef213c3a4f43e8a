// A prediction: the form that asks for it, and the answer behind it, which is hidden "until found": the search of the
// browser looks into it.
import { add } from "../../../../d2lmini/figures/base/nodes.js";
import { one } from "./page.js";
import { keep, recall } from "./storage.js";

// Returns: `render`, for when all is opened or closed, which `everything` tells, and `reveal`, to show the answer.
export function prediction(/** @type {HTMLElement} */ answer, /** @type {() => boolean} */ everything) {
  const place = /** @type {HTMLElement} */ (answer.previousElementSibling),
    name = String(place.dataset.question),
    form = one(place, "form", HTMLFormElement),
    status = one(place, "[role=status]"),
    show = one(form, "[type=button]"),
    forget = one(place, "p [type=button]");
  let said = recall(name) ?? "",
    shown = false;

  function render() {
    const open = shown || everything() || said !== "";
    if (open) answer.removeAttribute("hidden");
    else answer.setAttribute("hidden", "onbeforematch" in answer ? "until-found" : "");
    form.hidden = open;
    forget.hidden = !said;
    status.replaceChildren();
    if (said) add(status, "strong", {}, said).before("You predicted ");
    place.hidden = open && !said;
  }
  function reveal() {
    shown = true;
    render();
  }
  function commit(/** @type {string} */ to) {
    said = to;
    keep(name, said);
    render();
  }
  const focus = (/** @type {HTMLElement} */ node) => node.focus({ preventScroll: true });

  answer.tabIndex = -1; // the focus goes there when the form goes away
  // found by a search: the browser shows it, and gives up on the fold around it if we do so first
  answer.addEventListener("beforematch", () => {
    shown = true;
    setTimeout(render);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    commit(String(new FormData(form).get("said")).trim());
    focus(answer);
  });
  show.addEventListener("click", () => {
    reveal();
    focus(answer);
  });
  forget.addEventListener("click", () => {
    shown = false;
    form.reset();
    commit("");
    focus(everything() ? answer : one(form, "input"));
  });
  return { render, reveal };
}
