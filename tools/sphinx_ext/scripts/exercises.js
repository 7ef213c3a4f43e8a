// A page of exercises: choices that answer, ticks for what the page cannot check. tools/sphinx_ext/exercise_pages.py
import { button } from "../../../d2lmini/figures/base/controls.js";
import { add } from "../../../d2lmini/figures/base/nodes.js";
import { answered, lastOf, verdict } from "./parts/choice.js";
import { all, one } from "./parts/page.js";
import { isPassed, isTicked } from "./parts/progress.js";

const progress = window.bookProgress;
const LABELS = { discussion: "I compared my text with the model answer", identity: "I proved this and checked it" };
const keyOf = (/** @type {HTMLElement} */ place) => String(place.dataset.part);

// The options become radio buttons: to select one is no answer, which the button and Enter give.
function choice(/** @type {HTMLElement} */ place) {
  const key = keyOf(place);
  const form = add(place, "form"),
    fields = add(form, "fieldset"),
    line = add(form, "p", { class: "verdict" });
  add(fields, "legend", {}, "Choose one:");
  const options = all(place, ":scope > .option").map((node) => {
    const letter = String(node.dataset.letter),
      text = one(node, "p"),
      why = one(node, ".why", HTMLDetailsElement);
    text.id = `${key}-${letter}`;
    const named = { name: key, value: letter, "aria-labelledby": text.id };
    const radio = add(node, "input", { type: "radio", required: "", ...named });
    node.prepend(radio);
    fields.append(node);
    text.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest("a")) return;
      radio.checked = true; // as a label does it, which may hold no paragraph
      radio.focus({ preventScroll: true });
    });
    one(why, "summary").textContent = `Explanation of ${letter}`;
    return { letter, node, radio, why, right: Boolean(node.dataset.right) };
  });
  const right = options.find((option) => option.right)?.letter ?? "";

  let said = "";
  add(line, "button", {}, "Check my choice");
  line.append(" ");
  const status = add(line, "span", { role: "status" });
  line.append(" ");
  const again = button(line, "Forget my answer", () => {
    said = "";
    progress.forget(key);
    form.reset();
    for (const { why } of options) why.open = false;
    options[0].radio.focus({ preventScroll: true });
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const option = options.find(({ radio }) => radio.checked);
    if (!option) return;
    const changes = answered(progress.of(key), option.letter, right, said);
    said = option.letter;
    if (changes.tries) progress.change(key, changes);
    option.why.open = true;
    render();
  });

  function render() {
    const entry = progress.of(key),
      { chosen, passed, tries } = entry;
    for (const { letter, node, why } of options) {
      const tried = chosen.includes(letter);
      node.classList.toggle("is-right", passed && letter === right);
      node.classList.toggle("is-wrong", tried && letter !== right);
      why.hidden = !(tried || passed);
    }
    again.hidden = !tries;
    const words = verdict(entry, right, said);
    if (status.textContent !== words) status.textContent = words;
    const last = options.find(({ letter }) => letter === lastOf(entry, right, said));
    if (last && !options.some(({ radio }) => radio.checked)) last.radio.checked = true;
  }
  progress.listen(render);
}

function tick(/** @type {HTMLElement} */ place) {
  const key = keyOf(place),
    label = add(place, "label"),
    box = add(label, "input", { type: "checkbox" });
  label.append(` ${LABELS[String(place.dataset.kind)] ?? "I solved this"}`);
  place.append(" ");
  const also = add(place, "span");
  box.addEventListener("change", () => progress.change(key, { ticked: box.checked }));
  progress.listen(() => {
    const { ticked, passed } = progress.of(key);
    box.checked = ticked;
    also.textContent = passed ? "(verified in a notebook)" : "";
  });
}

const choices = all(document, "article .choice"),
  ticks = all(document, "article .tick"),
  tally = document.createElement("p");
choices.forEach(choice);
ticks.forEach(tick);
tally.className = "exercise-tally";
one(document, "article h1").after(tally);
progress.listen(() => {
  const said = [];
  if (choices.length)
    said.push(`Choices answered right: ${progress.count(isPassed, choices.map(keyOf))} of ${choices.length}.`);
  if (ticks.length)
    said.push(`Code and other parts you ticked: ${progress.count(isTicked, ticks.map(keyOf))} of ${ticks.length}.`);
  if (!progress.keeps()) said.push("This browser keeps nothing: it is gone when you leave the page.");
  tally.textContent = said.join(" ");
});
