// A translator in the page: a sentence becomes French piece by piece, with lines to the words that it looked at.
import { add, button, choice, keep, place, rove } from "../base/index.js";
import { newestQuestion } from "../page/host.js";
import { announcer, runLine, withModel } from "../page/model_box.js";
import { beams, headSwitches, laterWords, movedPositions } from "./parts.js";
import { attentionPicture } from "./picture.js";

function render({ model, el }) {
  const weights = model.get("weights"),
    parts = model.get("parts"),
    [blocks, heads] = model.get("size"),
    tested = model.get("tested"),
    whole = []; // translations of the tested sentences with all heads
  const now = { text: model.get("text"), off: new Set(model.get("off")), part: Object.keys(parts)[0] };
  withModel(el, { weights, recorded: model.get("recorded") }, show);

  // The factors of all heads, or null where none is off.
  function factors() {
    if (!now.off.size) return null;
    const of = (kind) =>
      Array.from({ length: blocks }, (_, b) =>
        Array.from({ length: heads }, (_, h) => (now.off.has(`${kind} ${b} ${h}`) ? 0 : 1)),
      );
    return Object.fromEntries(["encoder", "own", "cross"].map((kind) => [kind, of(kind)]));
  }

  function show(body) {
    // Asks the model: what the task returns; null where it was stopped, false where it failed.
    const questions = { translation: newestQuestion(body), score: newestQuestion(body), part: newestQuestion(body) };
    async function ask(place, task, options, step) {
      try {
        return await questions[place].asked((of) =>
          of(weights.name, task, { heads: factors(), ...options }, (told) => told && step(told)),
        );
      } catch (error) {
        say(`This does not work: ${error.message}.`);
        return false;
      }
    }
    const stop = (place) => questions[place].stop();

    const form = add(body, "form", { class: "d2lmini-controls" });
    const typing = add(form, "label", { class: "d2lmini-control", style: "flex: 1 1 20rem" });
    add(typing, "span", {}, "English");
    const field = add(typing, "input", {
      type: "text",
      lang: "en",
      "aria-label": "English sentence",
      autocomplete: "off",
      style: "flex: 1 1 auto; width: 100%",
    });
    field.value = now.text;
    add(form, "button", { type: "submit" }, "Translate");
    const examples = model.get("examples").map((text) => [text, text]);
    const chooser = choice(
      form,
      { label: "or", options: new Map([["", "an example"], ...examples]), value: "" },
      (text) => {
        if (!text) return;
        field.value = text;
        translate();
      },
    );
    chooser.style.maxWidth = "11rem";
    place(chooser, { "aria-label": "or an example sentence" });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      translate();
    });

    const picture = attentionPicture(body, blocks, heads);
    const note = add(body, "div", { role: "status" }),
      said = add(body, "div", { style: "min-height: 3em" }), // or what is below would jump
      say = announcer(said);
    runLine(body, weights);

    let last = null; // the translation that is finished
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
        if (told.source) {
          picture.source(told.source);
          if (told.unknown) {
            const some = told.unknown === 1 ? "one of these words" : `${told.unknown} of these words`;
            note.textContent = `The model does not know ${some}: it reads <unk> there.`;
          }
          return;
        }
        picture.target(told.piece, told.weights);
      });
      if (done !== null) picture.end();
      if (!done) return;
      const without = now.off.size ? ` (${now.off.size} of ${3 * blocks * heads} heads are off)` : "";
      say(`French${without}: “${done.text}”`);
      last = { ...done, text };
      drawn?.translated?.(last);
    }

    let drawn = null;
    const turned = () => keep(model, "off", [...now.off]);
    const tools = { ask, stop, translate, now, turned, factors, size: [blocks, heads], tested, whole };
    const makers = { heads: headSwitches, beam: beams, later: laterWords, positions: movedPositions };
    const names = Object.keys(parts);
    if (names.length) {
      const tabs = add(body, "div", {
        class: "d2lmini-maps",
        role: "group",
        "aria-label": "experiments",
        style: "margin: 10px 0 8px",
      });
      const box = add(body, "div");
      const nodes = names.map((name) =>
        button(tabs, parts[name], () => {
          now.part = name;
          open();
        }),
      );
      if (names.length > 1) rove(nodes, { entry: names.indexOf(now.part) });
      else tabs.style.display = "none";
      const open = () => {
        for (const place of ["score", "part"]) stop(place);
        nodes.forEach((node, i) => place(node, { "aria-pressed": names[i] === now.part }));
        box.replaceChildren();
        drawn = makers[now.part](box, tools);
        if (last) drawn.translated?.(last);
      };
      open();
    }
    translate();
  }
}

export default { render };
