// Byte-pair encoding of a text that the reader types: merges are learned and applied in the page.
// White space is what Python's str.isspace says.
import { add, draw, keep, panel, place, scroller, stepper, views } from "./base/index.js";

const WHITE = /^(?!\ufeff)[\s\x1c-\x1f\x85]$/u,
  LONGEST = 2000,
  ROWS = 8,
  GRAPH = [230, 96];
const DRAWN = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥" };
const letter = (c) => DRAWN[c] ?? (/^[\p{C}\p{Z}]$/u.test(c) ? `⟨${c.codePointAt().toString(16)}⟩` : c);
const shown = (token) => [...token].map(letter).join("");
const closes = (token) => WHITE.test([...token].at(-1)); // nothing is joined on behind white space

// Every occurrence of a pair, from left to right, becomes one token.
function join(ids, [a, b, made]) {
  const out = [];
  for (let i = 0; i < ids.length; i++) {
    const pair = ids[i] === a && ids[i + 1] === b;
    out.push(pair ? made : ids[i]);
    if (pair) i++;
  }
  return out;
}

// Pairs of neighbours with how often they occur: the most frequent first, among equals the lowest ids.
function countPairs(ids, names) {
  const counts = new Map(),
    shut = names.map(closes);
  for (let i = 0; i + 1 < ids.length; i++) {
    if (shut[ids[i]]) continue;
    const key = ids[i] * 65536 + ids[i + 1];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
const unkey = (key) => [Math.floor(key / 65536), key % 65536];

// All merges of a text, and the numbers of tokens before each and in the end: in the text, and of different ones.
function learn(text) {
  const symbols = [...text],
    names = [...new Set(symbols)].sort((a, b) => a.codePointAt() - b.codePointAt());
  const known = new Map(names.map((name, i) => [name, i])),
    start = symbols.map((c) => known.get(c)),
    merges = [],
    used = [],
    length = [];
  const letters = names.length;
  for (let ids = start; ; ids = join(ids, merges.at(-1))) {
    used.push(new Set(ids).size);
    length.push(ids.length);
    let best = -1,
      most = 0;
    for (const [key, count] of countPairs(ids, names))
      if (count > most || (count === most && key < best)) [best, most] = [key, count];
    if (!most) return { letters, names, known, start, merges, used, length };
    const [a, b] = unkey(best),
      name = names[a] + names[b];
    if (!known.has(name)) known.set(name, names.push(name) - 1);
    merges.push([a, b, known.get(name), most]);
  }
}

function render({ model, el }) {
  const now = { text: model.get("text"), word: model.get("word"), step: model.get("step") };
  let learned;
  const change = (key, act) => (event) => {
    now[key] = event.target.value;
    keep(model, key, now[key]);
    act();
  };

  const wide = "flex: 1 1 12rem; width: 100%";
  const typing = add(add(el, "div", { class: "d2lmini-controls" }), "label", { class: "d2lmini-control", style: wide });
  add(typing, "span", {}, "text");
  const area = add(typing, "textarea", {
    rows: 3,
    style: "flex: 1; resize: vertical",
    "aria-label": "text",
    spellcheck: "false",
  });
  area.value = now.text;
  area.addEventListener("input", change("text", relearn));
  const walk = stepper(add(el, "div", { class: "d2lmini-controls" }), { label: "merges", max: 1, value: 0 }, (step) => {
    if (step !== now.step) {
      now.step = step;
      keep(model, "step", step);
    }
    paint();
  });

  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const high = (parent, label, height) => {
    const box = scroller(parent);
    place(box, {
      role: "group",
      "aria-label": label,
      style: `max-height: ${height}; overflow-y: auto; margin: 4px 0 8px; padding: 2px`,
    });
    return box;
  };
  const line = high(el, "the text as tokens", "9rem");
  add(
    el,
    "div",
    { class: "d2lmini-key" },
    "Orange: what the last merge made; blue: made by earlier merges; dotted below: the pair that is merged next.",
  );

  const boxes = views(el, "of the merges", ["pairs", "merges so far", "counts"]),
    [pairs, made, graphs] = boxes;
  const [used, length] = ["different tokens", "tokens"].map((title, i) => {
    const { svg } = panel(graphs, {
      width: GRAPH[0],
      height: GRAPH[1],
      x: [0, 1],
      y: [0, 1],
      label: `${title}, against merges`,
    });
    if (i) svg.style.marginTop = "6px";
    return {
      title,
      words: draw(svg, "text", { x: 6, y: 16 }),
      dot: draw(svg, "circle", { r: 4.5, fill: "var(--orange)" }),
      curve: draw(svg, "polyline", { fill: "none", stroke: "var(--blue)", "stroke-width": 2 }),
    };
  });
  for (const one of boxes) one.style.flex = "1 1 12rem"; // three in a row
  add(graphs, "figcaption", {}, "against the number of merges, from none to all");
  const sheet = add(scroller(pairs), "table");
  add(sheet, "caption", {}, "most frequent pairs; the first is next");
  const head = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  for (const name of ["pair", "becomes", "times"]) add(head, "th", { scope: "col" }, name);

  const asking = add(add(el, "div", { class: "d2lmini-controls" }), "label", { class: "d2lmini-control" });
  add(asking, "span", {}, "another word");
  const asked = add(asking, "input", {
    type: "text",
    maxlength: 40,
    size: 14,
    "aria-label": "another word",
    spellcheck: "false",
  });
  asked.value = now.word;
  asked.addEventListener("input", change("word", paint));
  const answer = add(el, "div", { role: "group", "aria-label": "the word as tokens" });
  const verdict = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });
  add(made, "figcaption", {}, "the merges so far, in their order, each with how often its pair occurred");
  const list = high(made, "merges so far", "14rem");

  function tokens(box, ids, names, last, next) {
    box.replaceChildren();
    let word = null; // the tokens of one word stay on one line
    ids.forEach((id, i) => {
      const text = typeof id === "string" ? id : names[id];
      const fill =
        typeof id === "string"
          ? "#8884"
          : id === last
            ? "color-mix(in srgb, var(--orange) 45%, transparent)"
            : id < learned.letters
              ? "none"
              : "color-mix(in srgb, var(--blue) 26%, transparent)";
      const soon = next && ((id === next[0] && ids[i + 1] === next[1]) || (ids[i - 1] === next[0] && id === next[1]));
      word ??= add(box, "span", { style: "display: inline-flex; flex-wrap: wrap; gap: 3px 1px; margin: 0 6px 3px 0" });
      add(
        word,
        "span",
        {
          class: "token",
          style:
            "font-family: ui-monospace, monospace; padding: 0 3px; border: 1px solid #8888; " +
            `border-radius: 4px; background: ${fill}` +
            (soon ? "; border-bottom: 3px dotted var(--orange)" : ""),
        },
        shown(text),
      );
      if (closes(text)) word = null;
      if (text.endsWith("\n")) add(box, "br");
    });
  }

  function relearn() {
    learned = learn([...now.text.replace(/\r\n?/g, "\n")].slice(0, LONGEST).join(""));
    walk.end(learned.merges.length);
    const points = (values) => values.map((v, i) => `${graphX(i)},${graphY(v, values)}`).join(" ");
    place(used.curve, { points: points(learned.used) });
    place(length.curve, { points: points(learned.length) });
    walk.go(Math.min(now.step, learned.merges.length));
  }
  const graphX = (i) => 8 + (i / Math.max(1, learned.merges.length)) * (GRAPH[0] - 16);
  const graphY = (v, values) => GRAPH[1] - 8 - (v / Math.max(1, ...values)) * (GRAPH[1] - 34);

  function paint() {
    const { names, known, start, merges } = learned,
      done = merges.slice(0, now.step),
      next = merges[now.step];
    const ids = done.reduce(join, start),
      last = done.at(-1)?.[2];
    tokens(line, ids, names, last, next);

    const counts = [...countPairs(ids, names)].sort(([a, n], [b, m]) => m - n || a - b),
      extra = [...now.text].length - LONGEST;
    body.replaceChildren();
    for (const [key, count] of counts.slice(0, ROWS)) {
      const [a, b] = unkey(key),
        row = add(body, "tr", { class: body.children.length ? "" : "chosen" });
      add(row, "th", { scope: "row" }, `${shown(names[a])} + ${shown(names[b])}`);
      add(row, "td", {}, shown(names[a] + names[b]));
      add(row, "td", {}, String(count));
    }
    sheet.style.display = counts.length ? "" : "none";
    note.textContent = !start.length
      ? "There is no text to merge: type some."
      : `After ${now.step} of ${merges.length} merges: ${ids.length} tokens, ${learned.used[now.step]} of them ` +
        `different. ` +
        (next
          ? `Next: ${shown(names[next[0]])} + ${shown(names[next[1]])}, ${next[3]} times.`
          : "No pair is left: every word is one token.") +
        (extra > 0 ? ` The text is long: its last ${extra} characters are left out.` : "");

    for (const [graph, values] of [
      [used, learned.used],
      [length, learned.length],
    ]) {
      graph.words.textContent = `${graph.title}: ${values[now.step]} of at most ${Math.max(...values)}`;
      place(graph.dot, { cx: graphX(now.step), cy: graphY(values[now.step], values) });
    }

    const word = now.word && !closes(now.word) ? now.word + " " : now.word;
    const pieces = done.reduce(
        join,
        [...word].map((c) => known.get(c) ?? c),
      ),
      foreign = pieces.filter((p) => typeof p === "string");
    tokens(answer, pieces, names);
    verdict.textContent = !word
      ? "Type a word to see its tokens."
      : `“${now.word}”, with the space behind it: ${pieces.length} token${pieces.length > 1 ? "s" : ""}.` +
        (foreign.length
          ? ` Grey: not in the text, so that no token stands for it: ${[...new Set(foreign)].map(shown).join(" ")}`
          : "");
    list.textContent =
      done
        .map(
          ([a, b, made, count], i) =>
            `${i + 1}. ${shown(names[a])} + ${shown(names[b])} → ${shown(names[made])} (${count})`,
        )
        .join("\n") || "none";
    list.style.whiteSpace = "pre-wrap";
    list.scrollTop = list.scrollHeight; // the last one is the news
  }
  relearn();
}

export default { render };
