// How far the reader is: numbers into what tools/sphinx_ext/progress_page.py wrote, and the file that carries them.
(() => {
  const progress = window.bookProgress;
  const split = (text) => text.split(" ").filter(Boolean);
  const count = (keys, done) => keys.filter((key) => done(progress.of(key))).length;
  // Passed: a check said so, here (of a choice) or in a notebook. A tick is the reader's word, and counted apart.
  const DONE = [(e) => e.passed, (e) => e.ticked, (e) => e.passed];

  for (const line of document.querySelectorAll(".progress-line")) {
    const said = line.appendChild(document.createElement("span"));
    progress.listen(() => {
      const entries = progress.all(),
        checked = entries.filter((e) => e.passed).length,
        ticked = entries.filter((e) => e.ticked && !e.passed).length;
      line.hidden = !(checked + ticked);
      said.textContent = `${checked} of ${line.dataset.parts} parts checked and right, ${ticked} more ticked by you.`;
    });
  }

  const table = document.querySelector(".progress-table");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const foot = table.tFoot.appendChild(rows[0].cloneNode(true));
  foot.cells[0].textContent = "All chapters";
  foot.dataset.choices = rows.map((row) => row.dataset.choices).join(" ");
  foot.dataset.others = rows.map((row) => row.dataset.others).join(" ");
  progress.listen(() => {
    for (const row of [...rows, foot]) {
      const choices = split(row.dataset.choices),
        others = split(row.dataset.others);
      [choices, others, others].forEach((keys, i) => {
        const cell = row.cells[i + 1],
          done = count(keys, DONE[i]);
        if (!keys.length) cell.textContent = "–";
        else cell.textContent = i === 2 ? done : `${done} of ${keys.length}`;
        cell.classList.toggle("some", done > 0);
      });
    }
  });

  const tools = document.querySelector(".progress-tools"),
    status = tools.querySelector("[role=status]"),
    file = tools.querySelector("input");
  const number = (many, one) => `${many} ${many === 1 ? one : `${one}s`}`;
  const say = (words) => {
    status.textContent = words;
  };
  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.querySelector("[data-do=write]").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([progress.text()], { type: "application/json" }));
    link.download = "d2lmini-progress.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    say("Written: d2lmini-progress.json is among your downloads.");
  });
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    const { name } = file.files[0];
    try {
      const parts = progress.read(await file.files[0].text());
      say(`Read ${number(parts, "part")} from ${name}. What you had done stays.`);
    } catch {
      say(`${name} is no file of progress: nothing was read.`);
    }
    file.value = "";
  });
  tools.querySelector("[data-do=forget]").addEventListener("click", () => {
    const parts = progress.begun(),
      predictions = progress.predictions().length;
    if (!parts && !predictions) return say("There is nothing to forget.");
    const what = `Forget what you did of ${number(parts, "part")}, and ${number(predictions, "prediction")}?`;
    if (!confirm(`${what} A file keeps the parts: write it first.`)) return;
    progress.forget();
    say("Answers, ticks and predictions are forgotten.");
  });
  if (!progress.keeps()) say("This browser keeps nothing: write a file before you close the page.");
})();
