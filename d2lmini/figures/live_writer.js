// Writing with a GPT in the page: the text, what may come next, where a head looks, and what a cache saves.
import { add, button, choice, columns, keep, place, scroller, slider, strongest, tick } from "./base/index.js";
import { filtersOf, LONGEST, letterName, lettersBack, meanCosts, readable, whereIs } from "./numbers/live_writer.js";
import { newestQuestion } from "./page/host.js";
import { letterBox } from "./page/letters.js";
import { announcer, runLine, withModel } from "./page/model_box.js";
import { nextBars } from "./page/next_bars.js";
import { PACES, textWriter } from "./page/text_writer.js";

const WRITE = 400; // characters for a press

function render({ model, el }) {
  const keys = ["prompt", "temperature", "top_k", "top_p", "min_p", "seed", "block", "head", "cache"];
  const set = Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  set.pace = calm ? "still" : model.get("parts").includes("cache") ? "fast" : "reading";
  const change = (key, value) => {
    set[key] = value;
    keep(model, key, value);
  };
  const weights = model.get("weights");
  withModel(el, { weights, recorded: model.get("recorded") }, (body) => writing(body, model, set, change));
  runLine(el, weights);
}

function writing(body, model, set, change) {
  const names = model.get("tokens"),
    V = names.length,
    [attention, caching] = ["attention", "cache"].map((part) => model.get("parts").includes(part)),
    filters = () => filtersOf(set, V),
    question = newestQuestion(body);
  const writer = textWriter({
    ask: (options, take) => question.asked((of) => of(model.get("weights").name, "write", options, take)),
    stop: question.stop,
    settings: () => {
      const { seed, block, head, cache, pace } = set;
      return { filters: filters(), seed, block, head, cache, pace };
    },
    alive: () => body.isConnected,
    paint,
    say: (text) => say(text),
  });
  const { now } = writer;

  const field = promptField(body, set.prompt, (value) => {
    change("prompt", value);
    begin();
  });
  const remark = add(body, "div", { class: "d2lmini-key", role: "status", style: "min-height: 8px" });
  const pressing = add(body, "div", { class: "d2lmini-controls", style: "gap: 8px 12px; margin-bottom: 4px" });
  const press = () => (now.left ? writer.pause() : writer.go(WRITE));
  const write = button(pressing, "Write", press, { style: "width: 4.5rem" });
  button(pressing, "One more", () => writer.go(1), { "aria-label": "One more character" });
  button(pressing, "To the prompt", begin, { "aria-label": "Back to the prompt" });
  settings(body, pressing, V, set, (key, value) => {
    change(key, value);
    if (key === "seed") begin();
    else writer.resume();
  });

  const panels = add(body, "div", { class: "d2lmini-panels" }),
    side = add(panels, "div");
  const letters = letterBox(side, names, { point, goOn });
  const here = add(side, "div", { class: "d2lmini-key", style: "min-height: 1.4em" });
  const look =
    attention &&
    headLook(side, model, set, (key, value) => {
      change(key, value);
      writer.reread();
    });
  const costs =
    caching &&
    cacheTable(add(side, "div"), set.cache, (value) => {
      change("cache", value);
      writer.resume();
    });
  const bars = nextBars(
    add(panels, "figure"),
    (id) => letterName(names[id]),
    V,
    (caching ? 8 : 10) - (innerWidth <= 600 ? 3 : 0),
  );
  const say = announcer(body);
  begin();

  function begin() {
    const { ids, said } = readable(field.value, names);
    remark.textContent = said;
    writer.begin(ids);
  }

  function point(i) {
    now.at = i;
    paint();
  }

  // Takes the text back to a character, puts another one after it if that is named, and goes on.
  function goOn(i, id = null) {
    if (writer.back(i, id)) {
      const prompt = now.text.slice(0, now.given);
      field.value = prompt.map((one) => names[one]).join("");
      change("prompt", field.value);
    }
    writer.go(WRITE);
    say(id === null ? `Back to character ${i + 1}.` : `“${letterName(names[id])}” after character ${i + 1}.`);
  }

  function paint() {
    const { text, given, rows, at, left } = now,
      newest = text.length - 1,
      i = Math.min(at ?? newest, newest),
      row = rows[i],
      first = row?.first ?? rows[newest]?.first ?? 0;
    write.textContent = left ? "Pause" : "Write";
    letters({ text, given, first, i, weights: attention ? row?.weights : null, follow: at === null });
    here.textContent = whereIs({ i, first, given, context: model.get("context") });
    if (look) {
      const read = text.slice(0, i + 1).map((id) => names[id]),
        words = row ? lettersBack(read, first) : [];
      look.textContent = row
        ? `At “${letterName(names[text[i]])}” this head looks most at ${strongest(words, (j) => row.weights[j])}.`
        : "";
      place(look, { "aria-live": left ? "off" : "polite" });
    }
    bars({ logits: row?.logits, filters: filters(), next: text[i + 1], choose: (id) => goOn(i, id) });
    if (costs) costs(now.spent, set.cache);
  }
}

function promptField(parent, value, typed) {
  const label = add(parent, "label", { class: "d2lmini-control", style: "display: flex; align-items: flex-start" });
  add(label, "span", {}, "prompt");
  const field = add(label, "textarea", {
    rows: 2,
    maxlength: LONGEST,
    "aria-label": "prompt",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    style: "flex: 1 1 auto; resize: vertical",
  });
  field.value = value;
  field.addEventListener("input", () => typed(field.value));
  return field;
}

// The temperature beside the buttons, and what a phone has no room for, folded.
function settings(parent, pressing, V, set, changed) {
  const fold = add(parent, "details", innerWidth > 600 ? { open: "" } : {});
  add(fold, "summary", { style: "min-height: 24px" }, "top-k, nucleus, min-p, seed, pace");
  const box = add(fold, "div", { class: "d2lmini-controls", style: "gap: 0 20px; margin-bottom: 6px" });
  const setting = (where, key, label, min, max, step, say) =>
    slider(where, { label, min, max, step, value: set[key], say }, (value) => changed(key, value));
  setting(pressing, "temperature", "temperature", 0, 2, 0.05, (x) => (x ? x.toFixed(2) : "greedy"));
  setting(box, "top_k", "top-k", 1, V, 1, (k) => (k < V ? String(k) : "all"));
  setting(box, "top_p", "nucleus", 0.05, 1, 0.05, (p) => (p < 1 ? p.toFixed(2) : "all"));
  setting(box, "min_p", "min-p", 0, 0.5, 0.01, (p) => (p ? p.toFixed(2) : "none"));
  setting(box, "seed", "seed", 1, 50, 1, String);
  const paces = Object.entries(PACES).map(([key, { name }]) => [key, name]);
  choice(box, { label: "pace", options: Object.fromEntries(paces), value: set.pace }, (value) => {
    set.pace = value;
  });
}

// The menus of a head, and a line about where it looks, which is returned.
function headLook(parent, model, set, changed) {
  const menus = add(parent, "div", { class: "d2lmini-controls", style: "margin: 4px 0" });
  for (const key of ["block", "head"]) {
    const options = Object.fromEntries(Array.from({ length: model.get(`${key}s`) }, (_, i) => [i, String(i + 1)]));
    choice(menus, { label: key, options, value: set[key] }, (value) => changed(key, Number(value)));
  }
  return add(parent, "div", { class: "d2lmini-note", style: "min-height: 2.8em" });
}

// What each character cost, with a cache and without. Returns a function that shows it.
function cacheTable(parent, value, turn) {
  tick(parent, { label: "keep keys and values (cache)", value }, turn);
  const lines = columns(add(scroller(parent), "table"), [null, "written", "positions each", "ms each"]);
  const rows = ["with cache", "without"].map((name) => {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, name);
    return { line, cells: Array.from({ length: 3 }, () => add(line, "td")) };
  });
  return (spent, current) =>
    spent.forEach((one, i) => {
      rows[i].line.classList.toggle("chosen", one.cache === current);
      meanCosts(one).forEach((text, j) => {
        rows[i].cells[j].textContent = text;
      });
    });
}

export default { render };
