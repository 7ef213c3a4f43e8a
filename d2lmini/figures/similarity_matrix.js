// Cosines of pictures and texts: bets of one picture or one text, and the loss, by temperature.
import { add, button, keepAll, place, rove, scroller, slider, unpack } from "./base/index.js";
import { bets, reckon } from "./numbers/similarity_matrix.js";
import { photo } from "./page/photo.js";

// The cosines; `choose` takes the side and the number of what is pressed or has the focus. Paints which that is.
function matrix(parent, { texts, cosines }, picture, choose) {
  const box = scroller(parent);
  /** @type {HTMLElement} */ (box.parentElement).style.flexBasis = "27rem"; // eight texts side by side
  const label = "cosines: pictures in rows, texts in columns",
    sheet = add(box, "table", { "aria-label": label, style: "font-size: 0.85em" });
  const head = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  add(head, "td");
  const chooser = (cell, side, n, text, attributes) => {
    const node = button(cell, text, () => choose(side, n), attributes);
    node.addEventListener("focus", () => choose(side, n));
    return node;
  };
  const heads = texts.map((text, m) =>
    chooser(add(head, "th", { scope: "col" }), "text", m, `${m + 1}`, { "aria-label": `text ${m + 1}: ${text}` }),
  );
  const lines = cosines.map((line, n) => {
    const row = add(body, "tr"),
      named = { "aria-label": `picture ${n + 1}`, style: "padding: 0" },
      name = chooser(add(row, "th", { scope: "row" }), "picture", n, "", named);
    picture(name, n);
    const cells = line.map((cosine, m) => {
      const cell = add(row, "td", { class: "shade" }, cosine.toFixed(2));
      cell.style.setProperty("--w", String(Math.max(0, cosine)));
      cell.style.padding = "2px";
      if (n === m) cell.style.fontWeight = "700";
      return cell;
    });
    return { name, cells };
  });
  rove(lines.map(({ name }) => name));
  rove(heads);

  return (side, chosen) => {
    lines.forEach(({ name, cells }, n) => {
      place(name, { "aria-pressed": side === "picture" && n === chosen });
      cells.forEach((cell, m) => {
        cell.style.outline = (side === "picture" ? n : m) === chosen ? "2px solid var(--orange)" : "";
        cell.style.outlineOffset = "-2px";
      });
    });
    heads.forEach((node, m) => place(node, { "aria-pressed": side === "text" && m === chosen }));
  };
}

// How the chosen picture or text bets, a bar for each of the other side.
function betList(parent, texts, picture) {
  const box = add(parent, "div", { style: "flex: 1 1 16rem" }),
    title = add(box, "div", { style: "font-weight: 600; min-height: 1.4em" });
  const list = add(box, "table", { style: "width: 100%", "aria-label": "how the chosen one bets" });
  const rows = texts.map(() => {
    const row = add(list, "tr"),
      name = add(row, "th", { scope: "row", style: "border: 0; text-align: left" }),
      space = add(row, "td", { style: "border: 0; width: 35%" });
    const bar = add(space, "div", { style: "height: 14px" });
    return { name, bar, share: add(row, "td", { style: "border: 0; text-align: right" }) };
  });

  return ({ side, chosen }, weights) => {
    title.textContent =
      side === "picture" ? `Picture ${chosen + 1} bets on the texts` : `“${texts[chosen]}” bets on the pictures`;
    rows.forEach(({ name, bar, share }, m) => {
      const [mark, colour] = m === chosen ? ["✓ ", "orange"] : ["", "blue"];
      if (side === "picture") name.textContent = `${mark}${m + 1}. ${texts[m].replaceAll("-", "‑")}`;
      else {
        name.textContent = mark;
        picture(name, m);
      }
      place(bar, { style: `height: 14px; width: ${100 * weights[m]}%; background: var(--${colour})` });
      share.textContent = weights[m].toFixed(3);
    });
  };
}

function render({ model, el }) {
  const texts = model.get("texts"),
    B = texts.length;
  const state = {
    cosines: model.get("cosines"),
    temperature: model.get("temperature"),
    side: model.get("side"),
    chosen: model.get("chosen"),
  };
  const change = (changes) => {
    keepAll(model, state, changes);
    paint();
  };
  const pictures = model.get("images").map((packed) => photo(unpack(packed), model.get("width"), model.get("height")));
  const picture = (parent, n) => {
    const alt = `picture ${n + 1}, whose own text is: ${texts[n]}`,
      style = "display: block; image-rendering: pixelated";
    add(parent, "img", { src: pictures[n], alt, width: 26, height: 26, style });
  };

  const controls = add(el, "div", { class: "d2lmini-controls" }),
    range = { min: 0.01, max: 1, step: 0.001, scale: "log", digits: 3 };
  slider(controls, { label: "temperature", ...range, value: state.temperature }, (temperature) =>
    change({ temperature }),
  );
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const paintMatrix = matrix(panels, { texts, cosines: state.cosines }, picture, (side, chosen) =>
    change({ side, chosen }),
  );
  const paintBets = betList(panels, texts, picture);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "margin-top: 6px" });
  add(el, "div", { class: "d2lmini-key" }, "Bold: cosines of the pairs. ✓ and orange: the right partner.");

  function paint() {
    const { loss, right } = reckon(state.cosines, state.temperature);
    paintMatrix(state.side, state.chosen);
    paintBets(state, bets(state));
    note.textContent =
      `Temperature ${state.temperature.toFixed(3)}: loss ${loss.toFixed(3)} nats, where ${B} that cannot be told apart ` +
      `have ${Math.log(B).toFixed(3)}. ` +
      `${right[0]} of ${B} pictures choose their text, ${right[1]} of ${B} texts their picture.`;
  }
  paint();
}

export default { render };
