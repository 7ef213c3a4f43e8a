// How far the reader is: numbers into what tools/sphinx_ext/progress_page.py wrote, and the file that carries them.
import { add } from "../../../d2lmini/figures/base/nodes.js";
import { all, one } from "./parts/page.js";
import { isPassed, isTicked } from "./parts/progress.js";
import { number, words } from "./parts/text.js";

const progress = window.bookProgress;

function line(/** @type {HTMLElement} */ place) {
  const said = add(place, "span");
  progress.listen(() => {
    const checked = progress.count(isPassed),
      ticked = progress.count((entry) => isTicked(entry) && !isPassed(entry));
    place.hidden = !(checked + ticked);
    said.textContent = `${checked} of ${place.dataset.parts} parts checked and right, ${ticked} more ticked by you.`;
  });
}

// A row for each chapter, below them one for all.
function fill(/** @type {HTMLTableElement} */ table) {
  const rows = [...table.tBodies[0].rows],
    foot = /** @type {HTMLTableRowElement} */ (rows[0].cloneNode(true));
  table.tFoot?.append(foot);
  foot.cells[0].textContent = "All chapters";
  for (const name of ["choices", "others"]) foot.dataset[name] = rows.map((row) => row.dataset[name]).join(" ");
  progress.listen(() => {
    for (const { cells, dataset } of [...rows, foot]) {
      const [choices, others] = [words(dataset.choices), words(dataset.others)];
      const counts = [progress.count(isPassed, choices), progress.count(isTicked, others)];
      [...counts, progress.count(isPassed, others)].forEach((done, i) => {
        const of = i ? others.length : choices.length,
          said = i === 2 ? `${done}` : `${done} of ${of}`;
        cells[i + 1].textContent = of ? said : "–";
        cells[i + 1].classList.toggle("some", done > 0);
      });
    }
  });
}

function tools(/** @type {HTMLElement} */ form) {
  const status = one(form, "[role=status]"),
    file = one(form, "input", HTMLInputElement);
  const say = (/** @type {string} */ words) => {
    status.textContent = words;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  one(form, "[data-do=write]").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([progress.file()], { type: "application/json" }));
    link.download = "d2lmini-progress.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    say("Written: d2lmini-progress.json is among your downloads.");
  });
  file.addEventListener("change", async () => {
    const [given] = file.files ?? [];
    if (!given) return;
    try {
      say(`Read ${number(progress.read(await given.text()), "part")} from ${given.name}. What you had done stays.`);
    } catch {
      say(`${given.name} is no file of progress: nothing was read.`);
    }
    file.value = "";
  });
  one(form, "[data-do=forget]").addEventListener("click", () => {
    const parts = progress.begun(),
      predictions = progress.predictions().length;
    if (!parts && !predictions) return say("There is nothing to forget.");
    const what = `Forget what you did of ${number(parts, "part")}, and ${number(predictions, "prediction")}?`;
    if (!confirm(`${what} A file keeps the parts: write it first.`)) return;
    progress.forget();
    say("Answers, ticks and predictions are forgotten.");
  });
  if (!progress.keeps()) say("This browser keeps nothing: write a file before you close the page.");
}

all(document, ".progress-line").forEach(line);
all(document, ".progress-table", HTMLTableElement).forEach(fill);
all(document, ".progress-tools").forEach(tools);
