// The page's side: what may come next, as bars.

// Hollow: the model's own probabilities of its `most` likeliest tokens; filled: those that are drawn from. Returns a
// function that shows scores (or none) under filters: `next` is the token that came, `choose(token)` follows a press.
function nextBars(parent, shown, V, most) {
  const LINE = 25,
    NAME = 40,
    BAR = 168,
    rows = Math.min(most, V);
  const { svg } = panel(parent, {
    width: 340,
    height: LINE * (rows + 1) + 4,
    x: [0, 1],
    y: [0, 1],
    label: "what may come next",
  });
  draw(svg, "text", { x: NAME + 6, y: 15, opacity: 0.8 }, "next");
  draw(svg, "text", { x: 336, y: 15, "text-anchor": "end", opacity: 0.8 }, "model's → drawn from");
  let act = null,
    pressed = null; // what was under the pointer when it went down: the bars move
  const lines = Array.from({ length: rows }, (_, i) => {
    const y = LINE * (i + 1),
      line = draw(svg, "g", { role: "button", style: "cursor: pointer" });
    const bar = { x: NAME + 6, y: y + 4, height: LINE - 8 };
    line.addEventListener("pointerdown", () => {
      pressed = act?.(i);
    });
    line.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType === "mouse") pressed = null; // a finger leaves before its click
    });
    line.addEventListener("pointercancel", () => {
      pressed = null;
    });
    line.addEventListener("click", () => {
      (pressed ?? act?.(i))?.();
      pressed = null;
    });
    line.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act?.(i)();
    });
    draw(line, "rect", { y, width: 340, height: LINE, fill: "transparent" });
    return {
      line,
      name: draw(line, "text", { x: NAME - 2, y: y + 15, "text-anchor": "end" }),
      full: draw(line, "rect", { ...bar, "fill-opacity": 0.75 }),
      hollow: draw(line, "rect", { ...bar, fill: "none", stroke: "currentColor" }),
      number: draw(line, "text", { x: 336, y: y + 15, "text-anchor": "end" }),
    };
  });
  rove(lines.map(({ line }) => line));
  const caption = add(parent, "figcaption", { style: "min-height: 2.8em" });

  return ({ logits, filters, next, choose }) => {
    svg.style.opacity = logits ? "" : 0.3; // what is below it is of another letter
    act = null;
    if (!logits) return;
    const own = filtered(logits),
      after = filtered(logits, filters),
      order = ranked(logits),
      top = Math.max(...own, ...after);
    act = (i) => () => choose(order[i]);
    lines.forEach(({ line, name, full, hollow, number }, i) => {
      const id = order[i];
      name.textContent = (id === next ? "✓ " : "") + shown(id);
      place(full, { width: (BAR * after[id]) / top, fill: id === next ? "var(--orange)" : "var(--blue)" });
      place(hollow, { width: (BAR * own[id]) / top });
      number.textContent = `${own[id].toFixed(3)} → ${after[id] ? after[id].toFixed(3) : "dropped"}`;
      Object.assign(line.dataset, { id, own: own[id].toFixed(6), after: after[id].toFixed(6) });
      place(line, { "aria-label": `${shown(id)}, ${number.textContent}: go on with it` });
    });
    const rest = order.slice(rows).reduce((sum, id) => sum + own[id], 0);
    caption.textContent =
      `${after.filter(Boolean).length} of ${V} can be drawn; the model gives ${rest.toFixed(3)} to those not shown. ` +
      (next === undefined ? "Nothing is drawn yet." : "Orange, with a tick: what came next.");
  };
}
