// Experiments with a translator: each function draws one into a box, and returns what it does with a translation.
import { add, button, choice, place, rove, scroller, slider } from "../base/index.js";
import { beamText, changeText, laterText, pieceText } from "../numbers/live_translator.js";
import { announcer } from "../page/model_box.js";

const PLACES = { order: "in order", shuffled: "shuffled", none: "left out", shifted: "shifted" };

// Greedy decoding and a beam, side by side.
export function beams(box, { ask }) {
  let text = /** @type {string | null} */ (null);
  const controls = add(box, "div", { class: "d2lmini-controls" });
  const size = slider(controls, { label: "beam size", min: 1, max: 8, step: 1, value: 4, digits: 0 }, search);
  const panels = add(box, "div", { class: "d2lmini-panels" });
  const lists = ["greedy", "beam, the likeliest first"].map((title) => {
    const part = add(panels, "div");
    add(part, "b", {}, title);
    return add(part, "ol", { lang: "fr", style: "margin: 2px 0; padding-left: 1.4em" });
  });
  const result = announcer(box);
  const fill = (list, sequences) => {
    list.replaceChildren();
    for (const { text, total, length } of sequences)
      add(list, "li", {}, `${text || "(nothing)"} (log-probability ${total.toFixed(2)}, ${length} tokens)`);
  };
  async function search() {
    if (text === null) return;
    const beam_size = Number(size.value);
    const done = await ask("part", "translate_beam", { text, beam_size }, (told) => {
      fill(lists[0], [told.greedy]);
      fill(lists[1], [...told.ended, ...told.beams].slice(0, beam_size));
    });
    if (!done) return;
    fill(lists[1], done.beams);
    result(beamText(done.beams[0].total, done.greedy.total, beam_size));
  }
  return {
    translated(last) {
      text = last.text;
      search();
    },
  };
}

// Other words from one on: scores before do not move.
export function laterWords(box, { ask }) {
  add(box, "p", { style: "margin: 0 0 6px" }, "Choose a word: it and all later ones become random words.");
  const list = add(box, "div", { class: "d2lmini-maps", role: "group", "aria-label": "words of the translation" });
  const result = announcer(box);
  let seed = 0;
  return {
    translated({ text, ids }) {
      list.replaceChildren();
      const nodes = ids.map((_, i) => {
        const node = button(list, "", () => change(i), {
          "aria-label": `change from word ${i + 1} on`,
          style: "padding: 2px 5px",
        });
        return { node, word: add(node, "span", {}), move: add(node, "span", { style: "font-size: 0.8rem" }) };
      });
      rove(
        nodes.map(({ node }) => node),
        { entry: Math.floor(ids.length / 2) },
      );
      change(Math.floor(ids.length / 2));
      async function change(at) {
        const done = await ask("part", "change_later", { text, ids, at, seed: ++seed }, () => {});
        if (!done) return;
        nodes.forEach(({ node, word, move }, i) => {
          word.textContent = pieceText(done.pieces[i]);
          move.textContent = changeText(done.changes[i]);
          place(node, {
            "aria-pressed": i === at,
            "aria-label": `${word.textContent}, moved by ${move.textContent}: change from word ${i + 1} on`,
          });
          node.style.borderStyle = i < at ? "solid" : "dashed";
        });
        result(laterText(at, done.changes));
      }
    },
  };
}

// The same model with positions in order, shuffled, left out and shifted.
export function movedPositions(box, { ask }) {
  let text = /** @type {string | null} */ (null);
  const set = { where: "both", seed: 1, by: 10 };
  const controls = add(box, "div", { class: "d2lmini-controls" });
  const sides = { both: "encoder and decoder", encoder: "encoder", decoder: "decoder" };
  const change = (key) => (value) => {
    set[key] = value;
    run();
  };
  choice(controls, { label: "positions of", options: sides, value: set.where }, change("where"));
  slider(controls, { label: "shift by", min: 1, max: 60, step: 1, value: set.by, digits: 0 }, change("by"));
  button(controls, "shuffle again", () => change("seed")(set.seed + 1));
  const lines = add(add(scroller(box), "table"), "tbody");
  const cells = Object.entries(PLACES).map(([kind, title]) => {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, title);
    return { kind, title, cell: add(line, "td", { lang: "fr", style: "text-align: left" }) };
  });
  const result = announcer(box);
  async function run() {
    if (text === null) return;
    for (const { cell } of cells) cell.style.opacity = "0.5";
    const done = await ask("part", "move_positions", { text, ...set }, (told) => {
      const { cell } = cells[Object.keys(PLACES).indexOf(told.kind)];
      cell.textContent = told.text || "(nothing)";
      cell.style.opacity = "1";
    });
    if (!done) return;
    const [inOrder, ...others] = cells,
      same = others.filter(({ cell }) => cell.textContent === inOrder.cell.textContent),
      names = same.map(({ title }) => title).join(" and ");
    result(names ? `Unchanged with positions ${names}.` : "Each change of the positions changes the translation.");
  }
  return {
    translated(last) {
      text = last.text;
      run();
    },
  };
}
