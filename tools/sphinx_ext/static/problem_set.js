// A problem set: which exercises fit a course, which of them are chosen, and the command that makes their notebook.
// The table is from tools/sphinx_ext/problem_set_page.py. What is set and chosen is in the address, to be sent.
(() => {
  const form = document.querySelector(".set-tools");
  if (!form) return;
  const list = document.querySelector(".set-list"),
    result = document.querySelector(".set-chosen"),
    status = result.querySelector("[role=status]"),
    command = result.querySelector("pre"),
    none = result.querySelector("p > button"), // another button copies the command
    rows = [...list.querySelectorAll("tbody tr")],
    keyOf = (row) => row.querySelector("input").value;
  const { kind, source, graded, had } = form.elements;
  const SETTINGS = ["had", "kind", "source", "graded", "set"];
  let chosen = [], // keys, in the order in which they were chosen
    unknown = []; // of an address, from another edition

  const words = (text) => text.split(" ").filter(Boolean);
  const number = (many, one) => `${many} ${one}${many === 1 ? "" : "s"}`;
  const ticked = () => [...had].filter((box) => box.checked);

  function fits({ dataset }) {
    const known = ticked().map((box) => box.value);
    return (
      (!known.length || words(dataset.chapters).every((chapter) => known.includes(chapter))) &&
      (!kind.value || words(dataset.kind).includes(kind.value)) &&
      (!source.value || dataset.source === source.value) &&
      (!graded.checked || dataset.graded === "yes")
    );
  }

  // Chapters of the course that build on others which it has not had. Returns: a sentence each.
  function lacking() {
    const known = ticked().map((box) => box.value);
    return ticked().flatMap(({ value, dataset }) => {
      const missing = words(dataset.needs).filter((chapter) => !known.includes(chapter));
      return missing.length ? [` Chapter ${value} builds on ${missing.join(", ")}: tick these for its exercises.`] : [];
    });
  }

  function filter() {
    for (const row of rows) row.hidden = !fits(row) && !chosen.includes(keyOf(row));
    say();
  }

  function say() {
    const found = rows.filter((row) => chosen.includes(keyOf(row))),
      kinds = found.flatMap((row) => words(row.dataset.parts)),
      counts = [...new Set(kinds)].map((one) => `${kinds.filter((other) => other === one).length} ${one}`),
      seconds = found.reduce((sum, row) => sum + Number(row.dataset.seconds), 0);
    const parts = [`${rows.filter(fits).length} of ${number(rows.length, "exercise")} fit.`, ...lacking()];
    parts.push(` Chosen: ${number(found.length, "exercise")}`);
    if (found.length) parts.push(` with ${number(kinds.length, "part")} (${counts.join(", ")}); limits ${seconds} s`);
    parts.push(".");
    if (unknown.length) parts.push(` The address also names ${unknown.join(", ")}, not in this edition.`);
    status.textContent = parts.join("");
    command.textContent = `python -m tools.problem_set ${chosen.join(" ")} --out set1.ipynb`;
    command.closest(".highlight").hidden = !chosen.length;
    none.hidden = !chosen.length;
  }

  // Without what is not set. A link to a heading stays until the reader sets something.
  function keep() {
    const values = [ticked().map((box) => box.value), kind.value, source.value, graded.checked ? "yes" : "", chosen];
    const given = SETTINGS.map((name, i) => [name, values[i].toString()]).filter(([, value]) => value);
    const text = given.map((pair) => pair.join("=")).join("&");
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  // Returns: bool, whether the address holds settings.
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!SETTINGS.some((name) => given.has(name))) return false;
    const several = (name) => (given.get(name) ?? "").split(",").filter(Boolean);
    const every = rows.map(keyOf),
      keys = [...new Set(several("set"))];
    chosen = keys.filter((key) => every.includes(key));
    unknown = keys.filter((key) => !every.includes(key));
    for (const box of had) box.checked = several("had").includes(box.value);
    for (const select of [kind, source]) {
      select.value = given.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    graded.checked = given.get("graded") === "yes";
    mark();
    return true;
  }

  function mark() {
    for (const box of list.querySelectorAll("input")) box.checked = chosen.includes(box.value);
  }
  function follow() {
    if (!read()) return;
    filter();
    form.scrollIntoView();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    filter();
    keep();
  });
  list.addEventListener("change", ({ target }) => {
    chosen = chosen.filter((key) => key !== target.value);
    if (target.checked) chosen.push(target.value);
    say(); // a row that does not fit stays until a filter changes, and with it the focus
    keep();
  });
  none.addEventListener("click", () => {
    chosen = [];
    unknown = [];
    mark();
    filter();
    keep();
    form.querySelector("input").focus(); // the button is gone
  });

  list.classList.add("is-live");
  form.reset(); // what a browser keeps of a form is not in the address
  form.hidden = result.hidden = false;
  for (const box of list.querySelectorAll("input")) box.hidden = box.checked = false;
  filter();
  follow();
  addEventListener("hashchange", follow);
})();
