// A translator in the page: a sentence becomes French piece by piece, with lines to the words that it looked at.
import { add, button, choice, keep, place, rove } from "../base/index.js";
import { factorsOf, unknownWords } from "../numbers/live_translator.js";
import { newestQuestion } from "../page/host.js";
import { announcer, runLine, withModel } from "../page/model_box.js";
import { headSwitches } from "./heads.js";
import { beams, laterWords, movedPositions } from "./parts.js";
import { attentionPicture } from "./picture.js";

const PARTS = { heads: headSwitches, beam: beams, later: laterWords, positions: movedPositions };

/**
 * @typedef {{ text: string, ids: number[] }} Translation
 * @typedef {{ pause?: () => void, translated?: (last: Translation) => void }} Part  that is open: it may be paused, and
 *   hears of a translation that is finished
 */

function render({ model, el }) {
  const now = { text: model.get("text"), off: new Set(model.get("off")), part: Object.keys(model.get("parts"))[0] },
    whole = []; // translations of the tested sentences with all heads
  withModel(el, { weights: model.get("weights"), recorded: model.get("recorded") }, (body) =>
    translator(body, model, now, whole),
  );
}

function translator(body, model, now, whole) {
  const weights = model.get("weights"),
    [blocks, heads] = model.get("size"),
    factors = () => factorsOf(now.off, blocks, heads);
  const questions = { translation: newestQuestion(body), score: newestQuestion(body), part: newestQuestion(body) };
  // Asks the model: what the task returns; null where it was stopped, false where it failed.
  async function ask(place, task, options, step) {
    try {
      return await questions[place].asked((of) =>
        of(weights.name, task, { heads: factors(), ...options }, (told) => told && step(told)),
      );
    } catch (/** @type {any} */ error) {
      say(`This does not work: ${error.message}.`);
      return false;
    }
  }
  const stop = (place) => questions[place].stop();

  const field = sentenceField(body, now.text, model.get("examples"), translate);
  const picture = attentionPicture(body, blocks, heads);
  const note = add(body, "div", { role: "status" }),
    said = add(body, "div", { style: "min-height: 3em" }), // or what is below would jump
    say = announcer(said);
  runLine(body, weights);

  let last = /** @type {Translation | null} */ (null), // that is finished
    drawn = /** @type {Part | null} */ (null);
  async function translate() {
    now.text = field.value;
    keep(model, "text", now.text);
    last = null;
    drawn?.pause?.(); // the worker does one thing after the other
    for (const { stop } of Object.values(questions)) stop();
    picture.clear();
    note.textContent = "";
    say("");
    const text = now.text;
    const done = await ask("translation", "translate", { text }, (told) => {
      if (!told.source) return picture.target(told.piece, told.weights);
      picture.source(told.source);
      note.textContent = unknownWords(told.unknown);
    });
    if (done !== null) picture.end();
    if (!done) return;
    const without = now.off.size ? ` (${now.off.size} of ${3 * blocks * heads} heads are off)` : "";
    say(`French${without}: “${done.text}”`);
    last = /** @type {Translation} */ ({ ...done, text });
    drawn?.translated?.(last);
  }

  const turned = () => keep(model, "off", [...now.off]);
  const tools = {
    ask,
    stop,
    translate,
    now,
    turned,
    factors,
    size: [blocks, heads],
    tested: model.get("tested"),
    whole,
  };
  experiments(body, model.get("parts"), now.part, (part, box) => {
    now.part = part;
    for (const place of ["score", "part"]) stop(place);
    drawn = /** @type {Part} */ (PARTS[part](box, tools));
    if (last) drawn.translated?.(last);
  });
  translate();
}

// An English sentence, typed or chosen. Returns its field; `go` translates what it has.
function sentenceField(parent, text, examples, go) {
  const form = add(parent, "form", { class: "d2lmini-controls" });
  const typing = add(form, "label", { class: "d2lmini-control", style: "flex: 1 1 20rem" });
  add(typing, "span", {}, "English");
  const field = add(typing, "input", {
    type: "text",
    lang: "en",
    "aria-label": "English sentence",
    autocomplete: "off",
    style: "flex: 1 1 auto; width: 100%",
  });
  field.value = text;
  add(form, "button", { type: "submit" }, "Translate");
  const options = new Map([["", "an example"], ...examples.map((one) => [one, one])]);
  const chooser = choice(form, { label: "or", options, value: "" }, (example) => {
    if (!example) return;
    field.value = example;
    go();
  });
  chooser.style.maxWidth = "11rem";
  place(chooser, { "aria-label": "or an example sentence" });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  return field;
}

// Tabs, {name: title}, of which one is open: `draw(name, box)`.
function experiments(parent, parts, first, draw) {
  const names = Object.keys(parts);
  if (!names.length) return;
  const tabs = add(parent, "div", {
    class: "d2lmini-maps",
    role: "group",
    "aria-label": "experiments",
    style: "margin: 10px 0 8px",
  });
  const box = add(parent, "div");
  const nodes = names.map((name) => button(tabs, parts[name], () => open(name)));
  if (names.length > 1) rove(nodes, { entry: names.indexOf(first) });
  else tabs.style.display = "none";
  const open = (chosen) => {
    nodes.forEach((node, i) => place(node, { "aria-pressed": names[i] === chosen }));
    box.replaceChildren();
    draw(chosen, box);
  };
  open(first);
}

export default { render };
