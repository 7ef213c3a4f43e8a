// Cosines of pictures and texts: bets of one picture or one text, and the loss, by temperature.
import { add, button, keep, place, rove, scroller, slider, softmax, unpack } from "./base/index.js";

function render({ model, el }) {
  const texts = model.get("texts"),
    cosines = model.get("cosines"),
    wide = model.get("width"),
    high = model.get("height"),
    B = texts.length;
  const now = Object.fromEntries(["temperature", "side", "chosen"].map((key) => [key, model.get(key)]));
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
    paint();
  };
  const row = (side, n) => (side === "picture" ? cosines[n] : cosines.map((line) => line[n]));
  const best = (line) => line.indexOf(Math.max(...line));

  const pictures = model.get("images").map((packed) => {
    const sheet = Object.assign(document.createElement("canvas"), { width: wide, height: high }),
      pen = sheet.getContext("2d");
    const image = pen.createImageData(wide, high);
    unpack(packed).forEach((grey, i) => image.data.set([grey, grey, grey, 255], 4 * i));
    pen.putImageData(image, 0, 0);
    return sheet.toDataURL();
  });
  const picture = (parent, n) =>
    add(parent, "img", {
      src: pictures[n],
      alt: `picture ${n + 1}, whose own text is: ${texts[n]}`,
      width: 26,
      height: 26,
      style: "display: block; image-rendering: pixelated",
    });

  const controls = add(el, "div", { class: "d2lmini-controls" });
  slider(
    controls,
    {
      label: "temperature",
      min: 0.01,
      max: 1,
      step: 0.001,
      value: now.temperature,
      scale: "log",
      say: (x) => x.toFixed(3),
    },
    (x) => change({ temperature: x }),
  );

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    box = scroller(panels);
  box.parentElement.style.flexBasis = "27rem"; // eight texts side by side
  const sheet = add(box, "table", {
    "aria-label": "cosines: pictures in rows, texts in columns",
    style: "font-size: 0.85em",
  });
  const head = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  add(head, "td");
  const heads = texts.map((text, m) => {
    const cell = add(head, "th", { scope: "col" }),
      node = button(cell, `${m + 1}`, () => change({ side: "text", chosen: m }), {
        "aria-label": `text ${m + 1}: ${text}`,
      });
    node.addEventListener("focus", () => change({ side: "text", chosen: m }));
    return node;
  });
  const names = [],
    cells = cosines.map((line, n) => {
      const tr = add(body, "tr"),
        th = add(tr, "th", { scope: "row" });
      const node = button(th, "", () => change({ side: "picture", chosen: n }), {
        "aria-label": `picture ${n + 1}`,
        style: "padding: 0",
      });
      node.addEventListener("focus", () => change({ side: "picture", chosen: n }));
      picture(node, n);
      names.push(node);
      return line.map((cosine, m) => {
        const cell = add(tr, "td", { class: "shade" }, cosine.toFixed(2));
        cell.style.setProperty("--w", Math.max(0, cosine));
        cell.style.padding = "2px";
        if (n === m) cell.style.fontWeight = 700;
        return cell;
      });
    });
  rove(names);
  rove(heads);

  const right = add(panels, "div", { style: "flex: 1 1 16rem" }),
    title = add(right, "div", { style: "font-weight: 600; min-height: 1.4em" });
  const list = add(right, "table", { style: "width: 100%", "aria-label": "how the chosen one bets" });
  const bets = texts.map((_, m) => {
    const tr = add(list, "tr"),
      th = add(tr, "th", { scope: "row", style: "border: 0; text-align: left" }),
      space = add(tr, "td", { style: "border: 0; width: 35%" });
    return {
      th,
      bar: add(space, "div", { style: "height: 14px" }),
      share: add(tr, "td", { style: "border: 0; text-align: right" }),
      m,
    };
  });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "margin-top: 6px" });
  add(el, "div", { class: "d2lmini-key" }, "Bold: cosines of the pairs. ✓ and orange: the right partner.");

  function paint() {
    const { side, chosen, temperature } = now,
      weights = softmax(row(side, chosen), temperature);
    names.forEach((node, n) => place(node, { "aria-pressed": side === "picture" && n === chosen }));
    heads.forEach((node, m) => place(node, { "aria-pressed": side === "text" && m === chosen }));
    cells.forEach((line, n) =>
      line.forEach((cell, m) => {
        cell.style.outline = (side === "picture" ? n : m) === chosen ? "2px solid var(--orange)" : "";
        cell.style.outlineOffset = "-2px";
      }),
    );
    title.textContent =
      side === "picture" ? `Picture ${chosen + 1} bets on the texts` : `“${texts[chosen]}” bets on the pictures`;
    bets.forEach(({ th, bar, share, m }) => {
      th.replaceChildren();
      const mark = m === chosen ? "✓ " : "";
      if (side === "picture") th.textContent = `${mark}${m + 1}. ${texts[m].replaceAll("-", "‑")}`;
      else {
        th.textContent = mark;
        picture(th, m);
      }
      place(bar, {
        style: `height: 14px; width: ${100 * weights[m]}%; background: var(--${m === chosen ? "orange" : "blue"})`,
      });
      share.textContent = weights[m].toFixed(3);
    });
    // the same as SimilarityMatrix.reckon
    const told = ["picture", "text"].map((kind) => texts.map((_, n) => row(kind, n)));
    const loss = told.flat().reduce((sum, line, i) => sum - Math.log(softmax(line, temperature)[i % B]), 0) / (2 * B);
    const hits = told.map((lines) => lines.filter((line, n) => best(line) === n).length);
    note.textContent =
      `Temperature ${temperature.toFixed(3)}: loss ${loss.toFixed(3)} nats, where ${B} that cannot be told apart ` +
      `have ${Math.log(B).toFixed(3)}. ` +
      `${hits[0]} of ${B} pictures choose their text, ${hits[1]} of ${B} texts their picture.`;
  }
  paint();
}

export default { render };
