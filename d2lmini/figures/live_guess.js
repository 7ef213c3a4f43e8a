// A piece is hidden: what a model believes about it, before and after the reader has changed other pieces.
import { add, button, choice, keep, place, rove, scroller, tick } from "./base/index.js";
import { beliefColumn, headLook } from "./guess/beliefs.js";
import { changing, modes, typing } from "./guess/controls.js";
import {
  anyChanged,
  masked,
  opened,
  placeBeside,
  saidOf,
  shortened,
  slotLook,
  slotsOf,
  wantedOf,
} from "./numbers/live_guess.js";
import { newestQuestion } from "./page/host.js";
import { announcer, withModel } from "./page/model_box.js";

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
  /** @type {import("./numbers/live_guess.js").Sentence} */
  let at = { ids: [], pieces: [], now: [], mask: 0, unknown: false, hidden: 0, changed: 0, mode: "hide" };
  const question = newestQuestion(el);
  // null: something else was asked meanwhile; false: it failed, and why was said.
  async function latest(work) {
    try {
      return await question.asked(work);
    } catch (/** @type {any} */ error) {
      say(`This does not work: ${error.message}.`);
      return false;
    }
  }
  const piecesOf = (text) => latest((ask) => ask(own.name, "pieces", { text }));

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const options = new Map([["", "your own"], ...sentences.map(shortened).entries()]);
  const picked = choice(choosing, { label: "sentence", options, value: sentences.indexOf(model.get("text")) }, (n) => {
    if (n !== "") read(sentences[n], model.get("places")[n]);
    else if (field.value.trim()) read(field.value);
    else field.focus();
  });
  const { input: field } = typing(choosing, "or type one", "use it", (text) => read(text));
  const box = scroller(el),
    line = add(box, "div", { class: "d2lmini-maps", role: "group", "aria-label": "pieces" });
  place(line, { style: "gap: 4px; margin-bottom: 8px; padding: 3px; align-items: center" });
  box.style.maxHeight = "11rem";
  const markMode = modes(el, (mode) => {
    at.mode = mode;
    refresh();
  });
  const changes = changing(el, {
    type: async (text) => {
      const got = await piecesOf(text);
      if (got) put({ ids: got.ids.slice(1, -1), piece: got.pieces.slice(1, -1).join(" ") });
    },
    hide: () => put({ ids: [at.mask], piece: "[MASK]" }),
    undo: () => put(slotsOf(at)[at.changed]),
  });
  const showLooks = headLook(el, views, line, () => at.hidden);
  const columns = add(el, "div", {
    style: "display: grid; grid-template-columns: repeat(auto-fit, minmax(144px, 1fr)); gap: 8px 12px",
  });
  const say = announcer(el);
  const second = add(el, "div");
  if (left) withModel(second, { weights: left, called: "the model that sees only the left side" }, beside);
  const runs = [...new Set([own, left].filter(Boolean).map(({ run }) => run))].join(" and ");
  add(el, "div", { class: "d2lmini-key" }, `Weights of the run ${runs}. ✓: what really stood there.`);
  read(model.get("text"), model.get("place"));

  // The model that sees only the left side is there: it may be left out again.
  function beside(parent) {
    views[1].on = true;
    tick(parent, { label: "the model that sees only the left side", value: true }, (on) => {
      views[1].on = on;
      refresh();
    });
    if (at.ids.length) refresh();
  }

  async function read(text, hidden = undefined) {
    const got = await piecesOf(text);
    if (!got) return;
    at = opened(got, hidden);
    keep(model, "text", text);
    picked.value = sentences.includes(text) ? sentences.indexOf(text) : "";
    if (!sentences.includes(text)) field.value = text;
    line.replaceChildren();
    add(line, "span", { style: "padding: 4px" }, "[CLS]");
    const nodes = at.now.map((_, i) => button(line, "", () => choose(i)));
    add(line, "span", { style: "padding: 4px" }, "[SEP]");
    rove(nodes, { entry: at.hidden });
    refresh();
  }

  function choose(i) {
    if (at.mode === "hide") {
      at.hidden = i;
      keep(model, "place", i);
      if (at.changed === i) at.changed = placeBeside(i, at.now.length);
      at.now[i] = slotsOf(at)[i];
    } else if (i === at.hidden) {
      say(`“${at.pieces[i + 1]}” is hidden: change another piece.`);
      return;
    } else at.changed = i;
    refresh();
  }

  function put(slot) {
    if (at.changed === at.hidden) return;
    at.now[at.changed] = slot;
    refresh();
  }

  async function refresh() {
    paint();
    const { hidden, changed, mode } = at,
      any = anyChanged(at),
      truth = at.ids[hidden + 1];
    const wanted = views.filter(({ on }) => on).flatMap((view) => wantedOf(at, view));
    const beliefs = await latest((ask) => {
      const jobs = wanted.map(({ view: { name, causal }, slots }) =>
        ask(name, "guess", { ...masked(at, slots, [hidden]), truth, causal, top: model.get("top") }),
      );
      const other = { ...masked(at, at.now, [changed, hidden]), truth: at.ids[changed + 1], top: 6 };
      if (mode === "change" && changed !== hidden) jobs.push(ask(own.name, "guess", other));
      return Promise.all(jobs);
    });
    if (beliefs === null) return;
    const found = beliefs ? wanted.map((column, i) => ({ ...column, ...beliefs[i] })) : []; // else of another sentence
    offer(beliefs?.[wanted.length]?.best);
    columns.replaceChildren();
    for (const belief of found) beliefColumn(columns, belief, truth, any);
    if (beliefs) say(saidOf(at, found));
    showLooks(found);
  }

  // Pieces that a model would put where another one is to be changed.
  function offer(best = { ids: [], pieces: [] }) {
    changes.offered.replaceChildren();
    best.ids.forEach((id, i) => {
      const piece = best.pieces[i];
      if (piece !== at.now[at.changed].piece && changes.offered.childElementCount < 5)
        button(changes.offered, piece, () => put({ ids: [id], piece }), { "aria-label": `${piece}: put it there` });
    });
  }

  function paint() {
    line.querySelectorAll("button").forEach((node, i) => {
      const { text, label, hidden, style } = slotLook(at, i);
      node.textContent = text;
      place(node, { "aria-label": label, "aria-pressed": hidden, style });
    });
    markMode(at.mode);
    changes.show(at.mode === "change" && at.now.length > 1, at.pieces[at.changed + 1]);
  }
}

export default { render };
