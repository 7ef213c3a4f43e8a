// A beam search as a tree: a column for each step, ranked, from the start on the left.
import { add, choice, draw, keep, panel, place, rove, scroller, stepper } from "./base/index.js";

const WIDE = 92,
  PITCH = 104, // from column to column: the root and six of them fill the book's column next to a classic scrollbar
  ROOT = 48,
  HIGH = 32,
  TOP = 24;

function render({ model, el }) {
  const searches = model.get("searches"),
    sizes = Object.keys(searches),
    start = model.get("start");
  const over = model.get("length_penalty") ? " over the length penalty" : "";
  const now = { beam_size: model.get("beam_size"), step: model.get("step") };
  let pointed = null,
    nodes = new Map();
  const search = () => searches[now.beam_size],
    number = (x, digits = 2) => x.toFixed(digits).replace("-", "−"),
    bare = (word) => word.replace(/^▁(?=.)/, "");
  // Tokens as a text: some tokenizers mark the begin of a word.
  const spelled = (tokens) =>
    tokens.some((token) => token.includes("▁")) ? tokens.join("").replaceAll("▁", " ").trim() : tokens.join(" ");

  const controls = add(el, "div", { class: "d2lmini-controls" });
  const options = Object.fromEntries(sizes.map((size) => [size, size === "1" ? "1, greedy" : size]));
  if (sizes.length > 1)
    choice(controls, { label: "beam", options, value: now.beam_size }, (size) => {
      const done = now.step === search().columns.length; // a search that is over is followed by one that is
      now.beam_size = size;
      keep(model, "beam_size", size);
      pointed = null;
      const { length } = search().columns;
      walk.end(length);
      walk.go(done ? length : Math.min(now.step, length));
    });
  const walk = stepper(
    el.appendChild(controls.cloneNode()),
    { label: "step", max: search().columns.length, value: now.step },
    (step) => {
      if (step !== now.step) {
        now.step = step;
        keep(model, "step", step);
      }
      pointed = null;
      paint();
    },
  );
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 3em" });
  if (start.includes(" ")) add(el, "p", { class: "d2lmini-said" }, `Prompt: ${start} …`);
  const box = scroller(el);
  const hold = add(box, "div");
  add(
    el,
    "div",
    {},
    "Best first, with the log-probability so far. Bold frame: kept; double frame: ended; faint: pruned; dot: what " +
      "greedy decoding takes.",
  );
  const parting = add(el, "div", { class: "d2lmini-parting" });

  // Tokens of the sequence that ends at a place, and its places.
  function path(t, i) {
    const places = [];
    for (let [column, at] = [t, i]; column > 0; column--) {
      places.unshift([column, at]);
      at = search().columns[column - 1][at][0];
    }
    return places;
  }
  const words = (places) => places.map(([t, i]) => search().columns[t - 1][i][1]);
  const last = start.split(" ").at(-1),
    root = last === start ? [...start].slice(0, 6).join("") : `…${[...last].slice(-5).join("")}`;
  const key = ([t, i]) => `${t} ${i}`;

  // The place of the sequence `tokens` in the tree, if it is there.
  function find(tokens) {
    const column = search().columns[tokens.length - 1] ?? [];
    const at = column.findIndex((_, i) => words(path(tokens.length, i)).join("\n") === tokens.join("\n"));
    return at < 0 ? [] : path(tokens.length, at);
  }

  const x = (t) => (t ? 6 + ROOT + 16 + (t - 1) * PITCH : 6),
    wide = (t) => (t ? WIDE : ROOT);
  function paint() {
    const { columns, best, score } = search(),
      ended = now.step === columns.length;
    const rows = Math.max(...columns.map((column) => column.length));
    const width = x(columns.length) + WIDE + 6,
      height = TOP + rows * HIGH + 8;
    hold.replaceChildren();
    const { svg } = panel(hold, {
      width,
      height,
      x: [0, width],
      y: [height, 0],
      label: "the tree, a column for each step",
    });
    svg.style.minWidth = `${width}px`;
    const y = (t, i) => (t ? TOP + i * HIGH + 15 : TOP + 15);
    const greedy = searches["1"]?.best ?? [],
      taken = new Set(
        greedy.flatMap((_, i) =>
          find(greedy.slice(0, i + 1))
            .slice(-1)
            .map(key),
        ),
      );
    const edges = draw(svg, "g", { fill: "none" }),
      found = [];
    nodes = new Map();
    node(0, 0, start, null, "kept");
    for (let t = 1; t <= now.step; t++) {
      draw(svg, "text", { x: x(t) + WIDE / 2, y: 14, "text-anchor": "middle", opacity: 0.8 }, `token ${t}`);
      columns[t - 1].forEach(([parent, word, total, fate], i) => node(t, i, word, total, fate, Math.max(0, parent)));
    }
    rove(
      found.map(({ group }) => group),
      {
        to: (n, down, right) => {
          const { t, i, parent } = found[n],
            at = ([u, j]) => found.findIndex((other) => other.t === u && other.i === j);
          if (!right) return at([t, i + down]);
          if (right < 0) return at([t - 1, parent]);
          const child = found.findIndex((other) => other.t === t + 1 && other.parent === i);
          return child < 0 ? at([t + 1, Math.min(i, rows)]) : child;
        },
      },
    );
    svg.addEventListener("pointerleave", () => {
      pointed = null;
      mark();
    });
    box.scrollLeft = x(now.step) + WIDE - box.clientWidth + 6;

    function node(t, i, word, total, fate, parent) {
      const kept = fate !== "pruned",
        letters = [...bare(word)];
      const short = letters.length > 6 ? letters.slice(0, 5).join("") + "…" : letters.join("");
      const group = draw(svg, "g", {
        role: "button",
        style: "cursor: pointer",
        "data-fate": fate,
        "aria-label": t
          ? `${short} ${number(total, 1)}, token ${t}, rank ${i + 1}: ${bare(word)}, ${number(total)}, ${fate}`
          : `start, ${word}`,
      });
      const frame = draw(group, "rect", {
        x: x(t),
        y: y(t, i) - 13,
        width: wide(t),
        height: 26,
        rx: 5,
        "stroke-width": kept ? 2 : 1,
      });
      if (fate === "ended")
        draw(group, "rect", {
          x: x(t) + 3,
          y: y(t, i) - 10,
          width: WIDE - 6,
          height: 20,
          rx: 3,
          fill: "none",
          stroke: "currentColor",
        });
      if (!kept) place(group, { "fill-opacity": 0.75, "stroke-opacity": 0.4 });
      draw(group, "text", { x: x(t) + 5, y: y(t, i) + 4 }, t ? short : root);
      group.append(" ");
      if (t) draw(group, "text", { x: x(t) + WIDE - 5, y: y(t, i) + 4, "text-anchor": "end" }, number(total, 1));
      if (taken.has(key([t, i])))
        draw(group, "circle", { cx: x(t) + wide(t) - 2, cy: y(t, i) - 11, r: 4, fill: "var(--blue)" });
      const edge =
        t &&
        draw(edges, "path", {
          d:
            `M${x(t - 1) + wide(t - 1)} ${y(t - 1, parent)}C${x(t) - 4} ${y(t - 1, parent)} ${x(t) - 12} ${y(t, i)} ` +
            `${x(t)} ${y(t, i)}`,
        });
      const point = () => {
        pointed = [t, i];
        mark();
      };
      group.addEventListener("pointerenter", point);
      group.addEventListener("focus", point);
      group.addEventListener("click", () => group.focus());
      nodes.set(key([t, i]), { group, frame, edge, kept });
      found.push({ t, i, parent, group });
    }

    const all = find(best),
      text = spelled(best);
    const said = Object.fromEntries(Object.entries(searches).map(([size, other]) => [size, other.best]));
    function mark() {
      const lit = pointed ? path(...pointed) : ended ? all : [],
        lights = new Set(["0 0", ...lit].map((p) => (p === "0 0" ? p : key(p))));
      for (const [at, { group, frame, edge, kept }] of nodes) {
        const on = lit.length > 0 && lights.has(at);
        place(group, { "aria-pressed": on });
        place(frame, {
          stroke: on ? "var(--orange)" : "currentColor",
          fill: on ? "var(--orange)" : "currentColor",
          "fill-opacity": on ? 0.2 : kept ? 0.06 : 0,
        });
        if (edge)
          place(edge, {
            stroke: on ? "var(--orange)" : "currentColor",
            "stroke-width": on ? 3 : kept ? 2 : 1,
            opacity: on || kept ? 1 : 0.3,
          });
      }
      note.textContent = say(lit);
    }

    function say(lit) {
      if (pointed?.[0]) {
        const parts = lit.map(
          ([t, i], n) => columns[t - 1][i][2] - (n ? columns[lit[n - 1][0] - 1][lit[n - 1][1]][2] : 0),
        );
        const [, , total, fate] = columns[pointed[0] - 1][pointed[1]];
        const sum = parts
          .map((p) => (p < 0 ? number(p) : "−" + number(p)))
          .join(" ")
          .replaceAll(" −", " − ");
        return (
          `“${spelled(words(lit))}”: ${sum} = ${number(total)}, rank ${pointed[1] + 1} of step ` +
          `${pointed[0]}: ${fate}.`
        );
      }
      if (now.step === 0)
        return (
          `Nothing is chosen yet: press next. The beam keeps ` +
          `${now.beam_size === "1" ? "one beginning" : `${now.beam_size} beginnings`}.`
        );
      const count = (what) => columns[now.step - 1].filter(([, , , fate]) => fate === what).length;
      const state = `Step ${now.step}: ${count("kept")} kept, ${count("ended")} ended, the others are pruned.`;
      return ended ? `${state} The search is over: “${text}” is best, with ${number(score)}${over}.` : state;
    }

    const others = sizes.length > 1 && said["1"] && now.beam_size !== "1",
      first = others && said["1"].findIndex((word, i) => word !== best[i]);
    parting.textContent = !ended
      ? ""
      : !others
        ? ""
        : said["1"].join("\n") === best.join("\n")
          ? "Greedy decoding finds the same."
          : `Greedy decoding finds “${spelled(said["1"])}”, with ${number(searches["1"].score)}${over}: they ` +
            `part at token ${first < 0 ? said["1"].length + 1 : first + 1}.`;
    mark();
  }
  paint();
}

export default { render };
