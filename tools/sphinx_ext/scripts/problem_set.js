// A problem set: which exercises fit a course, which of them are chosen, and the command that makes their notebook.
// The table is from tools/sphinx_ext/problem_set_page.py. What is set and chosen is in the address, to be sent.
import { all, one } from "./parts/page.js";
import { counted, fits, lacking, read, written } from "./parts/problem_set.js";
import { number, words } from "./parts/text.js";

const form = one(document, ".set-tools", HTMLFormElement),
  list = one(document, ".set-list"),
  result = one(document, ".set-chosen"),
  status = one(result, "[role=status]"),
  command = one(result, "pre"),
  none = one(result, "p > button"); // another button copies the command
const had = all(form, "[name=had]", HTMLInputElement),
  kind = one(form, "[name=kind]", HTMLSelectElement),
  source = one(form, "[name=source]", HTMLSelectElement),
  graded = one(form, "[name=graded]", HTMLInputElement);
const exercises = all(list, "tbody tr").map((row) => {
  const { chapters, kind, source = "", graded, parts, seconds } = row.dataset,
    box = one(row, "input", HTMLInputElement);
  const needs = { chapters: words(chapters), parts: words(parts), seconds: Number(seconds) };
  return { row, box, key: box.value, ...needs, kinds: words(kind), source, graded: graded === "yes" };
});
let chosen = /** @type {string[]} */ ([]), // keys, in the order in which they were chosen
  unknown = /** @type {string[]} */ ([]); // of an address, from another edition

const wanted = () => ({
  had: had.filter(({ checked }) => checked).map(({ value }) => value),
  kind: kind.value,
  source: source.value,
  graded: graded.checked,
});
const needs = (/** @type {string} */ chapter) => words(had.find(({ value }) => value === chapter)?.dataset.needs);

function filter() {
  const now = wanted();
  for (const exercise of exercises) exercise.row.hidden = !fits(exercise, now) && !chosen.includes(exercise.key);
  say();
}

function say() {
  const now = wanted(),
    fitting = exercises.filter((exercise) => fits(exercise, now)).length,
    found = exercises.filter(({ key }) => chosen.includes(key));
  const parts = [`${fitting} of ${number(exercises.length, "exercise")} fit.`, ...lacking(now.had, needs)];
  parts.push(counted(found));
  if (unknown.length) parts.push(`The address also names ${unknown.join(", ")}, not in this edition.`);
  status.textContent = parts.join(" ");
  command.textContent = `python -m tools.problem_set ${chosen.join(" ")} --out set1.ipynb`;
  none.hidden = !chosen.length;
  one(result, ".highlight").hidden = none.hidden;
}

// A link to a heading stays until the reader sets something.
function keep() {
  const text = written({ ...wanted(), set: chosen });
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

function mark() {
  for (const { box, key } of exercises) box.checked = chosen.includes(key);
}

function follow() {
  const given = read(location.hash.slice(1));
  if (!given) return;
  const keys = exercises.map(({ key }) => key);
  chosen = given.set.filter((key) => keys.includes(key));
  unknown = given.set.filter((key) => !keys.includes(key));
  for (const box of had) box.checked = given.had.includes(box.value);
  for (const select of [kind, source]) {
    select.value = select === kind ? given.kind : given.source;
    if (select.selectedIndex < 0) select.value = "";
  }
  graded.checked = given.graded;
  mark();
  filter();
  form.scrollIntoView();
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", () => {
  filter();
  keep();
});
for (const { box, key } of exercises)
  box.addEventListener("change", () => {
    chosen = chosen.filter((other) => other !== key);
    if (box.checked) chosen.push(key);
    say(); // a row that does not fit stays until a filter changes, and with it the focus
    keep();
  });
none.addEventListener("click", () => {
  chosen = [];
  unknown = [];
  mark();
  filter();
  keep();
  had[0].focus(); // the button is gone
});

list.classList.add("is-live");
form.reset(); // what a browser keeps of a form is not in the address
form.hidden = result.hidden = false;
for (const { box } of exercises) box.hidden = box.checked = false;
filter();
follow();
addEventListener("hashchange", follow);
