// One encoder layer, stage by stage: a small shaded table whose rows are the tokens.
function render({ model, el }) {
  const tokens = model.get("tokens"), stages = model.get("stages"), heads = model.get("num_heads");
  const now = { stage: model.get("stage"), head: model.get("head") };
  let chosen = 0;
  const change = (key) => (value) => { now[key] = Number(value); keep(model, key, now[key]); paint(); };
  const go = (step) => () => change("stage")(Math.min(stages.length, Math.max(1, now.stage + step)));

  const controls = add(el, "div", { class: "d2lmini-controls" });
  const button = (text, step) => {
    const node = add(controls, "button", { type: "button", style: "font: inherit; cursor: pointer" }, text);
    node.addEventListener("click", go(step));
    return node;
  };
  const back = button("← previous", -1);
  const options = Object.fromEntries(stages.map((stage, i) => [i + 1, `${i + 1}. ${stage.title}`]));
  const stageBox = choice(controls, { label: "stage", options, value: now.stage }, change("stage"));
  const forth = button("next →", 1);
  const counted = Object.fromEntries(Array.from({ length: heads }, (_, i) => [i + 1, `head ${i + 1}`]));
  if (heads > 1) choice(controls, { label: "head", options: counted, value: now.head }, change("head"));

  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 3em" });
  const scroll = scroller(el);
  const sheet = add(scroll, "table"), header = add(add(sheet, "thead"), "tr"), body = add(sheet, "tbody");
  const rows = tokens.map((token, t) => {
    const row = add(body, "tr"), name = add(row, "th", { scope: "row" });
    const node = add(name, "button", { type: "button", "aria-label": `follow ${token}`,
      style: "font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; text-decoration: underline dotted" }, token);
    const choose = () => { chosen = t; mark(); };
    row.addEventListener("pointerenter", choose);
    node.addEventListener("focus", choose);
    node.addEventListener("click", choose);
    node.addEventListener("keydown", (event) => {
      const next = t + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] ?? NaN);
      if (!rows[next]) return;
      event.preventDefault();
      rows[next].node.focus();
    });
    return { row, name, node };
  });

  function mark() {
    rows.forEach(({ row, node }, t) => {
      row.classList.toggle("chosen", t === chosen);
      node.setAttribute("aria-pressed", t === chosen);
    });
  }

  function paint() {
    const stage = stages[now.stage - 1], perHead = Array.isArray(stage.numbers[0][0]);
    const numbers = perHead ? stage.numbers[now.head - 1] : stage.numbers;
    const whose = perHead && heads > 1 ? ` (head ${now.head} of ${heads})` : "";
    // not disabled: a button that is would lose the focus
    back.setAttribute("aria-disabled", now.stage === 1);
    forth.setAttribute("aria-disabled", now.stage === stages.length);
    stageBox.value = now.stage;
    note.textContent = `${now.stage} of ${stages.length}: ${stage.title}${whose}. ${stage.text} Shape ${stage.shape}.`;
    sheet.setAttribute("aria-label", `${stage.title}${whose}, a row for each token`);
    header.replaceChildren();
    add(header, "th", { scope: "col" }, "token");
    numbers[0].forEach((_, i) => add(header, "th", { scope: "col" }, stage.among ? tokens[i] : String(i + 1)));
    const top = Math.max(...numbers.flat().map(Math.abs), 1e-9);
    rows.forEach(({ row, name }, t) => {
      row.replaceChildren(name, ...numbers[t].map((x) => {
        const cell = document.createElement("td"), colour = x < 0 ? "--orange" : "--blue";
        cell.textContent = x.toFixed(2).replace("-", "−");
        cell.style.background = `color-mix(in srgb, var(${colour}) ${(45 * Math.abs(x) / top).toFixed(0)}%, transparent)`;
        return cell;
      }));
    });
    mark();
  }
  paint();
}

export default { render };
