// A piece is hidden: what a model believes about it, before and after the reader has changed other pieces.
import { add, button, choice, keep, place, rove, scroller, strongest, tick } from "./base/index.js";
import { newestQuestion } from "./page/host.js";
import { announcer, withModel } from "./page/model_box.js";

const ROW = "display: flex; justify-content: space-between; gap: 6px; padding: 0 4px; line-height: 20px; height: 20px";
const CUT = "overflow: hidden; text-overflow: ellipsis; white-space: nowrap";

function render({ model, el }) {
  withModel(el, { weights: model.get("weights"), recorded: model.get("recorded") }, (body) => guesses(model, body));
}

function guesses(model, el) {
  const sentences = model.get("sentences"),
    [left] = model.get("more"),
    own = model.get("weights");
  const views = [
    { name: own.name, title: "Both sides", causal: false, colour: "var(--blue)", on: true },
    { name: left?.name, title: "Left side", causal: true, colour: "var(--orange)", on: false },
  ];
  // `ids` of the sentence with [CLS] and [SEP]; `now`: of each of its pieces the ids that stand there now
  const at = { text: model.get("text"), ids: [], pieces: [], now: [], hidden: 0, changed: 0, mode: "hide" };
  const question = newestQuestion(el);
  let found = [];

  const number = (p) => (p >= 0.0005 ? p.toFixed(3) : "< 0.001");
  const flat = (slots) => slots.flatMap(({ ids }) => ids);
  // null: something else was asked meanwhile; false: it failed, and why was said.
  async function latest(work) {
    try {
      return await question.asked(work);
    } catch (error) {
      say(`This does not work: ${error.message}.`);
      return false;
    }
  }

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const titles = sentences.map((text) => (text.length > 44 ? text.slice(0, 43) + "…" : text));
  const picked = choice(
    choosing,
    { label: "sentence", options: new Map([["", "your own"], ...titles.entries()]), value: sentences.indexOf(at.text) },
    (n) => {
      if (n !== "") read(sentences[n], model.get("places")[n]);
      else if (field.value.trim()) read(field.value);
      else field.focus();
    },
  );
  const field = writing(choosing, "or type one", "use it", (text) => read(text));
  const line = add(scroller(el), "div", { class: "d2lmini-maps", role: "group", "aria-label": "pieces" });
  place(line, { style: "gap: 4px; margin-bottom: 8px; padding: 3px; align-items: center" });
  line.parentElement.style.maxHeight = "11rem";

  const modes = add(add(el, "div", { class: "d2lmini-controls" }), "div", {
    role: "group",
    "aria-label": "what choosing a piece does",
  });
  add(modes, "span", {}, "Choose a piece to ");
  const toHide = button(modes, "hide it", () => setMode("hide"));
  add(modes, "span", {}, " ");
  const toChange = button(modes, "change it", () => setMode("change"));
  const changing = add(el, "div", { class: "d2lmini-controls", role: "group" });
  const instead = writing(changing, "another", "put it there", async (text) => {
    const got = await latest((ask) => ask(own.name, "pieces", { text }));
    if (got) put(got.ids.slice(1, -1), got.pieces.slice(1, -1));
  });
  const offered = add(changing, "span", { style: "display: inline-flex; flex-wrap: wrap; gap: 4px" });
  button(changing, "hide it as well", () => put([at.mask], ["[MASK]"]));
  button(changing, "as it was", () => put(null));

  const looking = add(el, "div", { class: "d2lmini-controls" });
  const heads = choice(looking, { label: "shade by", options: { "": "nothing" }, value: "" }, shade);
  const whose = choice(looking, { label: "of", options: { 0: views[0].title, 1: views[1].title }, value: 0 }, shade);
  const where = add(el, "div", { style: "margin: -4px 0 8px" });
  const columns = add(el, "div", {
    style: "display: grid; grid-template-columns: repeat(auto-fit, minmax(144px, 1fr)); gap: 8px 12px",
  });
  const say = announcer(el);
  const second = add(el, "div");
  if (left) withModel(second, { weights: left, called: "the model that sees only the left side" }, beside);
  const runs = new Set([own, left].filter(Boolean).map(({ run }) => run));
  add(
    el,
    "div",
    { class: "d2lmini-key" },
    `Weights of the run ${[...runs].join(" and ")}. ✓: what really stood there.`,
  );

  function writing(parent, label, text, act) {
    const form = add(parent, "form", { class: "d2lmini-control", style: "flex: 0 1 26rem" });
    const named = add(form, "label", { class: "d2lmini-control", style: "flex: 1 1 auto; min-width: 0" });
    const shown = add(named, "span", {}, label);
    const input = add(named, "input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
    input.style.cssText = "flex: 1 1 4rem; width: 4rem";
    add(form, "button", { type: "submit", style: "flex: none" }, text);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      act(input.value);
    });
    return Object.assign(input, { named: shown });
  }

  // The model that sees only the left side is there: it may be left out again.
  function beside(box) {
    views[1].on = true;
    tick(box, { label: "the model that sees only the left side", value: true }, (on) => {
      views[1].on = on;
      refresh();
    });
    if (at.ids.length) refresh();
  }

  async function read(text, hidden) {
    const got = await latest((ask) => ask(own.name, "pieces", { text }));
    if (!got) return;
    const slots = got.pieces.slice(1, -1);
    Object.assign(at, { text, ...got, hidden: hidden ?? Math.floor(slots.length / 2), mode: "hide" });
    at.now = slots.map((piece, i) => ({ ids: [got.ids[i + 1]], piece }));
    at.changed = at.hidden > 0 ? at.hidden - 1 : Math.min(1, slots.length - 1);
    keep(model, "text", text);
    picked.value = sentences.includes(text) ? sentences.indexOf(text) : "";
    if (!sentences.includes(text)) field.value = text;
    line.replaceChildren();
    add(line, "span", { style: "padding: 4px" }, "[CLS]");
    const nodes = slots.map(() => button(line, "", () => {}));
    nodes.forEach((node, i) => node.addEventListener("click", () => choose(i)));
    add(line, "span", { style: "padding: 4px" }, "[SEP]");
    rove(nodes, { entry: at.hidden });
    refresh();
  }

  function setMode(mode) {
    at.mode = mode;
    refresh();
  }

  function choose(i) {
    if (at.mode === "hide") {
      at.hidden = i;
      keep(model, "place", i);
      if (at.changed === i) at.changed = i > 0 ? i - 1 : Math.min(1, at.now.length - 1);
      at.now[i] = { ids: [at.ids[i + 1]], piece: at.pieces[i + 1] };
    } else if (i === at.hidden) {
      say(`“${at.pieces[i + 1]}” is hidden: change another piece.`);
      return;
    } else at.changed = i;
    refresh();
  }

  function put(ids, pieces) {
    const i = at.changed;
    if (i === at.hidden) return;
    if (ids) at.now[i] = { ids, piece: pieces.join(" ") };
    else at.now[i] = { ids: [at.ids[i + 1]], piece: at.pieces[i + 1] };
    refresh();
  }

  const isChanged = (i) => at.now[i].piece !== at.pieces[i + 1];
  // The ids with pieces of `slots`, of which some are hidden, and the place of the first of these.
  function masked(slots, hidden) {
    const shown = slots.map((slot, i) => (hidden.includes(i) ? { ids: [at.mask] } : slot));
    return { ids: [at.ids[0], ...flat(shown), at.ids.at(-1)], place: 1 + flat(shown.slice(0, hidden[0])).length };
  }

  async function refresh() {
    paint();
    const { hidden, changed, mode } = at,
      before = at.pieces.slice(1, -1).map((piece, i) => ({ ids: [at.ids[i + 1]], piece }));
    const any = at.now.some((_, i) => i !== hidden && isChanged(i));
    const wanted = views
      .filter(({ on }) => on)
      .flatMap((view) => [{ view, slots: before }, ...(any ? [{ view, slots: at.now, after: true }] : [])]);
    const truth = at.ids[hidden + 1];
    const beliefs = await latest((ask) => {
      const jobs = wanted.map(({ view: { name, causal }, slots }) =>
        ask(name, "guess", { ...masked(slots, [hidden]), truth, causal, top: model.get("top") }),
      );
      if (mode === "change" && changed !== hidden)
        jobs.push(ask(own.name, "guess", { ...masked(at.now, [changed, hidden]), truth: at.ids[changed + 1], top: 6 }));
      return Promise.all(jobs);
    });
    if (beliefs === null) return;
    if (!beliefs) {
      found = []; // they are of another sentence
      offer();
      columns.replaceChildren();
      shade();
      return;
    }
    found = wanted.map((column, i) => ({ ...column, ...beliefs[i], any }));
    offer(beliefs[wanted.length]);
    show();
  }

  function offer(belief) {
    offered.replaceChildren();
    belief?.best.ids.forEach((id, i) => {
      const piece = belief.best.pieces[i];
      if (piece !== at.now[at.changed].piece && offered.childElementCount < 5)
        button(offered, piece, () => put([id], [piece]), { "aria-label": `${piece}: put it there` });
    });
  }

  function paint() {
    const nodes = line.querySelectorAll("button");
    at.now.forEach(({ piece }, i) => {
      const hidden = i === at.hidden,
        chosen = at.mode === "change" && i === at.changed;
      nodes[i].textContent = hidden ? "[MASK]" : piece;
      place(nodes[i], {
        "aria-label":
          (hidden ? `[MASK], hidden: ${at.pieces[i + 1]}` : piece) +
          `, piece ${i + 1}${chosen ? ", to be changed" : ""}`,
        "aria-pressed": hidden,
        style: `${isChanged(i) && !hidden ? "text-decoration: underline; " : ""}${chosen ? "border: 2px dashed" : ""}`,
      });
    });
    place(toHide, { "aria-pressed": at.mode === "hide" });
    place(toChange, { "aria-pressed": at.mode === "change" });
    changing.style.display = at.mode === "change" && at.now.length > 1 ? "" : "none";
    const name = at.pieces[at.changed + 1];
    place(changing, { "aria-label": `change ${name}` });
    instead.named.textContent = `in place of “${name}”`;
  }

  function show() {
    columns.replaceChildren();
    const said = [`“${at.pieces[at.hidden + 1]}” is hidden.`];
    for (const { view, after, any, best, truth, vocabulary } of found) {
      const title = `${view.title}${any ? (after ? ", after" : ", before") : ""}`;
      const box = add(columns, "div", { role: "group", "aria-label": title, style: "min-width: 0" });
      add(box, "b", { style: `display: block; ${CUT}` }, title);
      const list = add(box, "ol", { style: "list-style: none; margin: 2px 0; padding: 0" });
      const row = (parent, tag, piece, p, own) => {
        const share = `color-mix(in srgb, ${view.colour} 40%, transparent) ${(100 * p).toFixed(2)}%`;
        const node = add(parent, tag, {
          style:
            `${ROW}; background: linear-gradient(to right, ${share}, transparent 0); ` +
            (own ? "font-weight: 700" : ""),
        });
        add(node, "span", { style: CUT }, own ? `✓ ${piece}` : piece);
        add(node, "span", { "data-p": p, style: "flex: none" }, number(p));
      };
      best.pieces.forEach((piece, i) => row(list, "li", piece, best.p[i], best.ids[i] === at.ids[at.hidden + 1]));
      const rank = `rank ${truth.rank.toLocaleString("en")} of ${vocabulary.toLocaleString("en")}`;
      row(box, "div", truth.piece, truth.p, true);
      add(box, "div", { style: "padding: 0 4px" }, rank);
      const beginning = after ? "After the change:" : `${view.title}:`;
      said.push(
        `${beginning} first guess “${best.pieces[0]}”, ${number(best.p[0])}; “${truth.piece}” ${number(truth.p)}.`,
      );
    }
    if (at.unknown) said.push("[UNK] is what the model does not know.");
    if (views[1].on && at.now.slice(0, at.hidden).some(({ ids }) => ids.includes(at.mask)))
      said.push("The model that sees only the left side met no [MASK] in training.");
    say(said.join(" "));
    const [blocks, count] = found[0].looks.size;
    if (heads.length === 1)
      for (let i = 0; i < blocks * count; i++)
        add(heads, "option", { value: i }, `block ${Math.floor(i / count) + 1}, head ${(i % count) + 1}`);
    whose.parentElement.style.display = views[1].on ? "" : "none";
    shade();
  }

  // Shades the pieces as they stand now by where a head looks from the hidden one.
  function shade() {
    const view = views[views[1].on ? Number(whose.value) : 0],
      column = found.findLast((one) => one.view === view);
    const nodes = [...line.children];
    for (const node of nodes) node.style.background = "";
    where.textContent = "";
    if (heads.value === "" || !column) return;
    const [, count, length] = column.looks.size,
      row = column.looks.weights.subarray(Number(heads.value) * length, (Number(heads.value) + 1) * length);
    const sizes = [1, ...column.slots.map(({ ids }, i) => (i === at.hidden ? 1 : ids.length)), 1],
      names = nodes.map((node) => node.textContent);
    let start = 0;
    const weights = sizes.map((size) => {
      start += size;
      return row.slice(start - size, start).reduce((a, b) => a + b, 0);
    });
    nodes.forEach((node, i) => {
      node.style.background = `color-mix(in srgb, ${view.colour} ${(70 * weights[i]).toFixed(1)}%, transparent)`;
    });
    const from = view.causal ? `“${names[at.hidden]}”, the place before the hidden piece,` : "the hidden piece";
    const head = `Block ${Math.floor(heads.value / count) + 1}, head ${(heads.value % count) + 1}`;
    where.textContent = `${head} looks from ${from} at ${strongest(names, (i) => weights[i]) || "nothing much"}.`;
  }

  read(at.text, model.get("place"));
}

export default { render };
