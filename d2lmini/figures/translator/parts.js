// What a reader does with a translator besides translating: each function draws a part of live_translator.js into a box
// and gives what to do when a translation is finished, or nothing.
import { add, button, choice, place, rove, scroller, slider } from "../base/index.js";
import { announcer } from "../page/model_box.js";
import { pieceLook } from "./picture.js";

const HEADS = { encoder: "encoder", own: "decoder", cross: "cross" },
  PLACES = { order: "in order", shuffled: "shuffled", none: "left out", shifted: "shifted" };

// Toggles of all heads, and the score over the test sentences.
export function headSwitches(
  box,
  { ask, stop, translate, now, turned, factors, size: [blocks, heads], tested, whole },
) {
  const { sentences, references, metric } = tested;
  const grid = add(scroller(box), "table");
  const top = add(add(grid, "thead"), "tr"),
    lines = add(grid, "tbody"),
    nodes = [];
  add(top, "th", { scope: "col", style: "padding: 2px" }, "block");
  for (const name of Object.values(HEADS)) add(top, "th", { scope: "colgroup", colspan: heads }, name);
  for (let b = 0; b < blocks; b++) {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, b + 1);
    for (const kind of Object.keys(HEADS))
      for (let h = 0; h < heads; h++) {
        const key = `${kind} ${b} ${h}`,
          cell = add(line, "td", { style: "padding: 0" });
        const mark = () => {
          const off = now.off.has(key);
          place(node, { "aria-checked": !off });
          node.textContent = off ? "–" : "✓";
          node.style.background = off ? "none" : "color-mix(in srgb, var(--blue) 35%, transparent)";
        };
        const label = `${HEADS[kind]}, block ${b + 1}, head ${h + 1}`;
        const turn = () => {
          if (!now.off.delete(key)) now.off.add(key);
          mark();
          changed();
        };
        const node = button(cell, "", turn, {
          role: "switch",
          "aria-label": label,
          title: label,
          style: "min-width: 24px; padding: 0 2px",
        });
        nodes.push({ node, mark });
        mark();
      }
  }
  const width = 3 * heads;
  const next = (i, down, right) =>
    right && Math.floor((i + right) / width) !== Math.floor(i / width) ? -1 : i + down * width + right;
  rove(
    nodes.map(({ node }) => node),
    { to: next },
  );
  const controls = add(box, "div", { class: "d2lmini-controls", style: "margin-top: 8px" });
  button(controls, "all heads on", () => {
    now.off.clear();
    for (const { mark } of nodes) mark();
    changed();
  });
  const count = button(controls, "", () => (running ? pause() : go()));
  const bars = [scoreBar(box, "all heads"), scoreBar(box, "these heads")];
  const result = announcer(box);
  let found = [],
    score = null,
    running = false;
  paint();

  function paint() {
    const left = found.length && found.length < sentences.length;
    count.textContent = running ? "Pause" : left ? "Go on" : `Score over ${sentences.length} test sentences`;
    const said = (value) =>
      metric === "exact" ? `${value} of ${found.length} exact` : `BLEU ${value.toFixed(1)}, ${found.length} sentences`;
    const most = metric === "exact" ? found.length : 100;
    [score?.before, score?.score].forEach((value, i) =>
      bars[i](value === undefined ? 0 : value / most, value === undefined ? "not counted" : said(value)),
    );
    return score && `All heads: ${said(score.before)}. These heads: ${said(score.score)}.`;
  }
  function changed() {
    turned();
    pause();
    found = [];
    score = null;
    result("");
    paint();
    translate();
  }
  function pause() {
    running = false;
    stop("score");
    paint();
  }
  async function go() {
    if (found.length === sentences.length) found = [];
    running = true;
    result("");
    paint();
    const options = { sentences, references, metric, found, whole, heads: factors() };
    const done = await ask("score", "score_translator", options, (told) => {
      whole[found.length] = told.whole;
      found.push(told.text);
      score = told;
      paint();
    });
    if (done === null) return; // paused
    running = false;
    const said = paint();
    if (done) result(said);
  }
  return { pause };
}
// Greedy decoding and a beam, side by side.
export function beams(box, { ask }) {
  let translation = null;
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
    if (!translation) return;
    const beam_size = Number(size.value);
    const done = await ask("part", "translate_beam", { text: translation.text, beam_size }, (told) => {
      fill(lists[0], [told.greedy]);
      fill(lists[1], [...told.ended, ...told.beams].slice(0, beam_size));
    });
    if (!done) return;
    fill(lists[1], done.beams);
    const gain = done.beams[0].total - done.greedy.total;
    const by =
      Math.abs(gain) < 1e-4 ? "equals that" : `is ${Math.abs(gain).toFixed(2)} ${gain > 0 ? "above" : "below"} that`;
    result(`The log-probability of the best of a beam of ${beam_size} ${by} of the greedy one.`);
  }
  return {
    translated(last) {
      translation = { text: last.text };
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
          word.textContent = pieceLook(done.pieces[i], true).text;
          move.textContent = moved(done.changes[i]);
          place(node, {
            "aria-pressed": i === at,
            "aria-label": `${word.textContent}, moved by ${move.textContent}: change from word ${i + 1} on`,
          });
          node.style.borderStyle = i < at ? "solid" : "dashed";
        });
        const most = (from, to) => moved(Math.max(0, ...done.changes.slice(from, to)));
        result(
          `From word ${at + 1} on, all words are other ones. The scores that choose words 1 to ${at + 1} move by ` +
            `${most(0, at + 1)} at most` +
            (at + 1 < ids.length ? `, those of later words by up to ${most(at + 1)}.` : "."),
        );
      }
    },
  };
}
const moved = (change) => (change < 1e-4 ? (change ? change.toExponential(0) : "0") : change.toFixed(2));

// The same model with positions in order, shuffled, left out and shifted.
export function movedPositions(box, { ask }) {
  let translation = null;
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
    return [kind, add(line, "td", { lang: "fr", style: "text-align: left" })];
  });
  const result = announcer(box);
  async function run() {
    if (!translation) return;
    const of = Object.fromEntries(cells);
    for (const [, cell] of cells) cell.style.opacity = 0.5;
    const done = await ask("part", "move_positions", { text: translation.text, ...set }, ({ kind, text }) => {
      of[kind].textContent = text || "(nothing)";
      of[kind].style.opacity = 1;
    });
    if (!done) return;
    const same = cells.filter(([kind, cell]) => kind !== "order" && cell.textContent === of.order.textContent);
    const names = same.map(([kind]) => PLACES[kind]).join(" and ");
    result(names ? `Unchanged with positions ${names}.` : "Each change of the positions changes the translation.");
  }
  return {
    translated(last) {
      translation = last;
      run();
    },
  };
}

// A bar with its name and a number. Returns a function that sets both.
function scoreBar(parent, name) {
  const line = add(parent, "div", { style: "display: flex; gap: 8px; align-items: center; margin: 3px 0" });
  add(line, "span", { style: "flex: 0 0 6rem" }, name);
  const track = add(line, "span", { style: "flex: 1 1 4rem; max-width: 14rem; height: 12px; border: 1px solid #8886" });
  const bar = add(track, "span", { style: "display: block; height: 100%; background: var(--blue)" });
  const number = add(line, "span", { style: "flex: 0 0 auto" });
  return (share, text) => {
    bar.style.width = `${100 * share}%`;
    number.textContent = text;
  };
}
