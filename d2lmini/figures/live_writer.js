// Writing with a GPT in the page: the text, what may come next, where a head looks, and what a cache saves.
import { add, button, choice, keep, place, scroller, slider, strongest, tick } from "./base/index.js";
import { newestQuestion } from "./page/host.js";
import { announcer, runLine, withModel } from "./page/model_box.js";
import { letterBox } from "./page/letters.js";
import { nextBars } from "./page/next_bars.js";

const WRITE = 400, // characters for a press
  MOST = 2000, // of a text
  LONGEST = 1000; // of a prompt
// how often the page shows what has come, in milliseconds, and how many characters then
const PACES = {
  slow: ["slow", 200, 1],
  reading: ["reading", 40, 1],
  fast: ["full speed", 16, MOST],
  still: ["without motion", 1000, MOST],
};
const ALIKE = { "’": "'", "‘": "'", "–": "-", "—": "-", "\u00a0": " ", "\t": " " }; // what phones and pages put in

function render({ model, el }) {
  const weights = model.get("weights"),
    names = model.get("tokens"),
    context = model.get("context"),
    [attention, caching] = ["attention", "cache"].map((part) => model.get("parts").includes(part)),
    ids = new Map(names.map((name, i) => [name, i])),
    V = names.length;
  const keys = ["prompt", "temperature", "top_k", "top_p", "min_p", "seed", "block", "head", "cache"];
  const now = Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  now.pace = calm ? "still" : caching ? "fast" : "reading";
  const change = (key, value) => {
    now[key] = value;
    keep(model, key, value);
  };
  const shown = (id) => ({ "\n": "↵", " ": "␣" })[names[id]] ?? names[id];
  const filters = () => ({
    temperature: now.temperature,
    top_k: now.top_k < V ? now.top_k : null,
    top_p: now.top_p < 1 ? now.top_p : null,
    min_p: now.min_p || null,
  });

  withModel(el, { weights, recorded: model.get("recorded") }, (body) => {
    let text = [], // ids of all characters
      given = 0, // so many of them are the prompt
      draws = 0, // random numbers that are used up
      rows = [], // what is known at each character: live/write.js
      queue = [], // what was written and is not shown yet
      at = null, // which character is looked at; null: the newest
      left = 0, // how many characters are still to be shown
      timer = 0;
    const question = newestQuestion(body);
    const spent = [true, false].map((cache) => ({ cache, characters: 0, positions: 0, milliseconds: 0 }));

    const typing = add(body, "label", { class: "d2lmini-control", style: "display: flex; align-items: flex-start" });
    add(typing, "span", {}, "prompt");
    const field = add(typing, "textarea", {
      rows: 2,
      maxlength: LONGEST,
      "aria-label": "prompt",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      style: "flex: 1 1 auto; resize: vertical",
    });
    field.value = now.prompt;
    field.addEventListener("input", () => {
      change("prompt", field.value);
      begin();
    });
    const remark = add(body, "div", { class: "d2lmini-key", role: "status", style: "min-height: 8px" });
    const pressing = add(body, "div", { class: "d2lmini-controls", style: "gap: 8px 12px; margin-bottom: 4px" });
    const writing = button(pressing, "Write", () => (left ? pause() : go(WRITE)), { style: "width: 4.5rem" });
    button(pressing, "One more", () => go(1), { "aria-label": "One more character" });
    button(pressing, "To the prompt", begin, { "aria-label": "Back to the prompt" });
    const fold = add(body, "details", innerWidth > 600 ? { open: "" } : {}); // a phone has no room for all
    add(fold, "summary", { style: "min-height: 24px" }, "top-k, nucleus, min-p, seed, pace");
    const settings = add(fold, "div", { class: "d2lmini-controls", style: "gap: 0 20px; margin-bottom: 6px" });
    const setting = (key, label, min, max, step, say, parent = settings) =>
      slider(parent, { label, min, max, step, value: now[key], say }, (value) => {
        change(key, value);
        if (key === "seed") begin();
        else resume();
      });
    setting("temperature", "temperature", 0, 2, 0.05, (x) => (x ? x.toFixed(2) : "greedy"), pressing);
    setting("top_k", "top-k", 1, V, 1, (k) => (k < V ? String(k) : "all"));
    setting("top_p", "nucleus", 0.05, 1, 0.05, (p) => (p < 1 ? p.toFixed(2) : "all"));
    setting("min_p", "min-p", 0, 0.5, 0.01, (p) => (p ? p.toFixed(2) : "none"));
    setting("seed", "seed", 1, 50, 1, String);
    const paces = Object.fromEntries(Object.entries(PACES).map(([key, [name]]) => [key, name]));
    choice(settings, { label: "pace", options: paces, value: now.pace }, (value) => {
      now.pace = value;
    });

    const panels = add(body, "div", { class: "d2lmini-panels" }),
      side = add(panels, "div");
    const letters = letterBox(side, names, { point, goOn });
    const here = add(side, "div", { class: "d2lmini-key", style: "min-height: 1.4em" });
    const looking = attention && add(side, "div", { class: "d2lmini-controls", style: "margin: 4px 0" });
    const look = attention && add(side, "div", { class: "d2lmini-note", style: "min-height: 2.8em" });
    for (const [key, n] of attention ? Object.entries({ block: model.get("blocks"), head: model.get("heads") }) : []) {
      const options = Object.fromEntries(Array.from({ length: n }, (_, i) => [i, String(i + 1)]));
      choice(looking, { label: key, options, value: now[key] }, (value) => {
        change(key, Number(value));
        rows = [];
        ask(left);
      });
    }
    const costs =
      caching &&
      cacheTable(add(side, "div"), now.cache, (value) => {
        change("cache", value);
        resume();
      });
    const bars = nextBars(add(panels, "figure"), shown, V, (caching ? 8 : 10) - (innerWidth <= 600 ? 3 : 0));
    const say = announcer(body);
    begin();

    // The prompt as the model can read it.
    function begin() {
      const { found, said } = readable(field.value, ids);
      remark.textContent = said;
      text = found.length ? found : [ids.get("\n") ?? 0];
      given = text.length;
      draws = 0;
      rows = [];
      at = null;
      ask(0);
    }

    // Asks the model to go on from the text as it is shown. What it was asked before is over.
    function ask(count) {
      halt();
      left = Math.min(count, MOST - text.length);
      const { seed, block, head, cache } = now;
      const options = { tokens: text, count: left, filters: filters(), seed, draws, cache, block, head };
      const take = (step) => {
        for (const row of step.rows) {
          if (row.cost) queue.push(row);
          else rows[row.at] = row;
        }
        pump();
      };
      question
        .asked((of) => of(weights.name, "write", options, take))
        .catch((error) => {
          halt();
          paint();
          say(`The model has stopped: ${error.message}.`);
        });
      paint();
    }

    function halt() {
      question.stop();
      queue = [];
      left = 0;
      clearTimeout(timer);
      timer = 0;
    }

    // Shows what has come, at the reader's pace.
    function pump() {
      const [, wait, most] = PACES[now.pace];
      timer ||= setTimeout(show, left ? wait : 0, most);
    }

    function show(most) {
      timer = 0;
      if (!body.isConnected) return halt();
      const [sum] = spent.filter(({ cache }) => cache === now.cache);
      for (const row of queue.splice(0, most)) {
        rows[row.at] = row;
        text[row.at] = row.token;
        draws++;
        left--;
        sum.characters++;
        for (const key of ["positions", "milliseconds"]) sum[key] += row.cost[key];
      }
      if (queue.length) pump();
      else if (!left && rows[text.length - 1]) {
        halt();
        if (draws) say(`The text has ${text.length} characters, ${given} of them the prompt.`);
      }
      paint();
    }

    function pause() {
      halt();
      paint();
      say(`Paused at character ${text.length}.`);
    }

    function go(count) {
      at = null;
      if (text.length < MOST) ask(count);
      else say(`The text has ${MOST} characters, as many as fit: go back to an earlier one.`);
    }

    // What was changed holds from the next character on.
    function resume() {
      if (left) ask(left);
      else paint();
    }

    function point(i) {
      at = i;
      paint();
    }

    // Takes the text back to a character, puts another one after it if that is named, and goes on.
    function goOn(i, id = null) {
      text = id === null ? text.slice(0, i + 1) : [...text.slice(0, i + 1), id];
      rows = rows.slice(0, i + 1);
      if (i + 1 < given) {
        given = i + 1;
        field.value = text
          .slice(0, given)
          .map((one) => names[one])
          .join("");
        change("prompt", field.value);
      }
      go(WRITE);
      say(id === null ? `Back to character ${i + 1}.` : `“${shown(id)}” after character ${i + 1}.`);
    }

    function paint() {
      const newest = text.length - 1,
        i = Math.min(at ?? newest, newest),
        row = rows[i],
        first = row?.first ?? rows[newest]?.first ?? 0;
      writing.textContent = left ? "Pause" : "Write";
      letters({ text, given, first, i, weights: attention ? row?.weights : null, follow: at === null });
      here.textContent = `Character ${i + 1}, the prompt has ${given}. `;
      if (i >= context)
        here.textContent +=
          `The model was trained on ${context} at a time` +
          (first ? ` and reads the last ${i + 1 - first}, not the paler ones.` : ", and the text is longer now.");
      if (attention) {
        const words = Array.from(row?.weights ?? [], (_, j) => {
          const back = i - first - j;
          return `“${shown(text[first + j])}” ${back ? `(${back} back)` : "(itself)"}`;
        });
        look.textContent = row
          ? `At “${shown(text[i])}” this head looks most at ${strongest(words, (j) => row.weights[j])}.`
          : "";
        place(look, { "aria-live": left ? "off" : "polite" });
      }
      bars({ logits: row?.logits, filters: filters(), next: text[i + 1], choose: (id) => goOn(i, id) });
      if (caching) costs(spent, now.cache);
    }
  });
  runLine(el, weights);
}

// What of a prompt the model knows, as ids, and a sentence about what became of the rest.
function readable(prompt, ids) {
  const unknown = new Set(),
    alike = new Set(),
    found = [];
  const named = (one) =>
    /[\p{C}\p{M}\p{Z}]/u.test(one) ? `U+${one.codePointAt(0).toString(16).toUpperCase()}` : `\u2068${one}\u2069`;
  for (const one of prompt.replaceAll("\r", "")) {
    if (!ids.has(one)) (ids.has(ALIKE[one]) ? alike : unknown).add(named(one));
    const id = ids.get(one) ?? ids.get(ALIKE[one]);
    if (id !== undefined) found.push(id);
  }
  const list = (set) => [...set].slice(0, 8).join(" ") + (set.size > 8 ? " …" : "");
  const said = [
    [unknown.size, `Left out, the model does not know them: ${list(unknown)}.`],
    [alike.size, `Replaced by what looks like it: ${list(alike)}.`],
    [!found.length, "No prompt is left, so the text begins with a line break."],
    [prompt.length >= LONGEST, `A prompt has at most ${LONGEST} characters.`],
  ];
  return { found, said: said.flatMap(([holds, sentence]) => (holds ? [sentence] : [])).join(" ") };
}

// What each character cost, with a cache and without. Returns a function that shows it.
function cacheTable(parent, value, turn) {
  tick(parent, { label: "keep keys and values (cache)", value }, turn);
  const grid = add(scroller(parent), "table"),
    top = add(add(grid, "thead"), "tr"),
    lines = add(grid, "tbody");
  add(top, "td");
  for (const name of ["written", "positions each", "ms each"]) add(top, "th", { scope: "col" }, name);
  const cells = ["with cache", "without"].map((name) => {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, name);
    return [line, ...Array.from({ length: 3 }, () => add(line, "td"))];
  });
  return (spent, current) =>
    spent.forEach(({ cache, characters, positions, milliseconds }, i) => {
      const [line, ...numbers] = cells[i],
        mean = (sum) => (characters ? (sum / characters).toFixed(1) : "–");
      line.classList.toggle("chosen", cache === current);
      [characters, mean(positions), mean(milliseconds)].forEach((number, j) => {
        numbers[j].textContent = number;
      });
    });
}

export default { render };
