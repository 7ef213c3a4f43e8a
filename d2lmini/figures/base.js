// Shared by all figures: a few helpers over the DOM, and softmax.
const SVG = "http://www.w3.org/2000/svg";

function add(parent, tag, attributes = {}, text) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function draw(parent, tag, attributes = {}, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

const place = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
};

// What to do, in the words of a touch screen where there is one: there keys are left out.
function told(text) {
  if (!matchMedia("(pointer: coarse)").matches) return text;
  const words = { "point at": "touch", "pointed at": "touched", "click on": "tap", click: "tap" };
  return text.replace(/[;.]? by keyboard: .*/i, ".").replace(/\b(point(ed)? at|click( on)?)\b/gi, (found) => {
    const word = words[found.toLowerCase()];
    return /[A-Z]/.test(found) ? word[0].toUpperCase() + word.slice(1) : word;
  });
}

// The frame that a figure stands in: its title, a line that says what to do, and Reset, which draws it anew from the
// state it began with. Keys stop here: in JupyterLab, an arrow key on a slider would fold the chapter.
function framed(render, title, hint) {
  return ({ model, el }) => {
    const before = new Map(); // what the reader changed, as it was
    const watched = {
      get: (key) => model.get(key),
      set(key, value) {
        if (!before.has(key)) before.set(key, model.get(key));
        model.set(key, value);
      },
      save_changes: () => model.save_changes(),
      on: (event, handler) => model.on(event, handler),
    };
    const head = add(el, "div", { class: "d2lmini-head" });
    add(head, "div", { class: "d2lmini-title" }, title);
    button(head, "Reset", () => {
      for (const [key, value] of before) keep(model, key, value);
      before.clear();
      start();
    });
    add(el, "p", { class: "d2lmini-hint" }, told(hint));
    let body = add(el, "div");
    function start() {
      const fresh = document.createElement("div");
      render({ model: watched, el: fresh });
      body.replaceWith(fresh);
      body = fresh;
    }
    start();
    el.classList.add("d2lmini-figure");
    el.addEventListener("keydown", (event) => {
      const own = event.target.matches("input:not([type=checkbox]), select, textarea"); // these know Home and End
      if (ENDS[event.key] && !event.ctrlKey && !own) event.preventDefault(); // else the page goes to its own
    });
    for (const kind of ["keydown", "keyup", "keypress"])
      el.addEventListener(kind, (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
      });
  };
}

// A box for what may be too wide (or too high, if its style limits that): it scrolls, and while there is more to see,
// the keyboard reaches it and an arrow says where.
function scroller(parent) {
  const around = add(parent, "div", { class: "d2lmini-scrolls" }),
    box = add(around, "div", { class: "d2lmini-scroll" }),
    cue = add(around, "span", { class: "d2lmini-cue", "aria-hidden": true });
  const look = () => {
    const wide = box.scrollWidth - box.clientWidth,
      high = box.scrollHeight - box.clientHeight;
    if (wide > 1 || high > 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    cue.textContent = wide - box.scrollLeft > 1 ? "→" : high - box.scrollTop > 1 ? "↓" : "";
  };
  const observer = new ResizeObserver(look);
  box.addEventListener("scroll", look);
  observer.observe(box);
  queueMicrotask(() => {
    for (const child of box.children) observer.observe(child);
  });
  return box;
}

// Tell the model what the reader did; as an anywidget that reaches Python.
function keep(model, key, value) {
  model.set(key, value);
  model.save_changes();
}

// A labelled range input with its value beside it. `scale: "log"` walks powers of ten; `say` writes the value.
function slider(parent, { label, min, max, step, value, scale, digits = 2, say = (x) => x.toFixed(digits) }, onInput) {
  const log = scale === "log";
  const inner = log ? Math.log10 : (x) => x,
    outer = log ? (x) => 10 ** x : (x) => x;
  const row = add(parent, "label", { class: "d2lmini-control" });
  add(row, "span", {}, label);
  const input = add(row, "input", { type: "range", min: inner(min), max: inner(max), step, "aria-label": label });
  const shown = add(row, "output");
  const show = () => {
    const x = outer(Number(input.value));
    shown.textContent = say(x);
    input.setAttribute("aria-valuetext", shown.textContent);
    return x;
  };
  input.value = inner(value);
  show();
  input.addEventListener("input", () => onInput(show()));
  return input;
}

function button(parent, text, act, attributes = {}) {
  const node = add(parent, "button", { type: "button", ...attributes }, text);
  node.addEventListener("click", act);
  return node;
}

// A labelled menu. `options`: values and their texts; a Map where a value may be a whole number, which an object would
// put first.
function choice(parent, { label, options, value }, onInput) {
  const row = add(parent, "label", { class: "d2lmini-control" });
  add(row, "span", {}, label);
  const select = add(row, "select", { "aria-label": label });
  for (const [key, text] of options instanceof Map ? options : Object.entries(options))
    add(select, "option", { value: key }, text);
  select.value = value;
  select.addEventListener("input", () => onInput(select.value));
  return select;
}

function tick(parent, { label, value }, onInput) {
  const row = add(parent, "label", { class: "d2lmini-control" });
  const input = add(row, "input", { type: "checkbox" });
  add(row, "span", {}, label);
  input.checked = value;
  input.addEventListener("input", () => onInput(input.checked));
  return input;
}

// Steps from `min` to `max`: back, next, to the end, and a slider. `go(step)` goes there, `end(max)` moves the end.
function stepper(parent, { label, min = 0, max, value }, onStep) {
  const at = () => Number(bar.value);
  const go = (step) => {
    bar.value = step;
    bar.dispatchEvent(new Event("input"));
  };
  const back = button(parent, "← back", () => go(at() - 1), { "aria-label": `${label}: back` });
  const forth = button(parent, "next →", () => go(at() + 1), { "aria-label": `${label}: next` });
  const last = button(parent, "to the end", () => go(bar.max), { "aria-label": `${label}: to the end` });
  const bar = slider(parent, { label, min, max, step: 1, value, digits: 0 }, (step) => {
    mark();
    onStep(step);
  });
  // not disabled: a button that is would lose the focus
  function mark() {
    place(back, { "aria-disabled": at() <= min });
    for (const node of [forth, last]) place(node, { "aria-disabled": at() >= Number(bar.max) });
  }
  mark();
  return {
    go,
    end(to) {
      bar.max = to;
    },
  };
}

// Views of one thing: side by side where there is room, on a phone one at a time, chosen by a row of buttons. `names`:
// of each its short name. Returns: a `figure` for each, with the `row` and with `show`, which takes a number.
function views(parent, label, names) {
  const row = add(parent, "div", { class: "d2lmini-views", role: "group", "aria-label": label }),
    panels = add(parent, "div", { class: "d2lmini-panels" });
  const show = (shown) =>
    names.forEach((_, i) => {
      place(buttons[i], { "aria-pressed": i === shown });
      boxes[i].classList.toggle("d2lmini-other", i !== shown);
    });
  const buttons = names.map((name, i) => button(row, name, () => show(i))),
    boxes = names.map(() => add(panels, "figure"));
  show(0);
  return Object.assign(boxes, { row, show });
}

// What is folded on a phone, where there is no room for all, under a line that says what it is.
function fold(parent, text) {
  const box = add(parent, "details", innerWidth > 600 ? { open: "" } : {});
  add(box, "summary", {}, text);
  return box;
}

// An SVG panel of the given size whose units are the data's: x to the right, y up. Where it has less room than its
// width, its text keeps the size on the screen.
function panel(parent, { label, width, height, x: [x0, x1], y: [y0, y1] }) {
  const svg = draw(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  svg.style.maxWidth = `${width}px`;
  if (parent.localName === "figure")
    place(parent, { style: `flex: 1 1 min(${width}px, 16rem); max-width: ${width}px` });
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width) svg.style.setProperty("--zoom", Math.max(1, width / contentRect.width));
  }).observe(svg);
  return {
    svg,
    width,
    height,
    x: (value) => ((value - x0) / (x1 - x0)) * width,
    y: (value) => ((y1 - value) / (y1 - y0)) * height,
    invert(event) {
      const box = svg.getBoundingClientRect();
      const within = (t, low, high) => Math.min(high, Math.max(low, low + t * (high - low)));
      return [
        within((event.clientX - box.left) / box.width, x0, x1),
        within((box.bottom - event.clientY) / box.height, y0, y1),
      ];
    },
    clamp: ([x, y]) => [Math.min(x1, Math.max(x0, x)), Math.min(y1, Math.max(y0, y))],
    step: [(x1 - x0) / 40, (y1 - y0) / 40],
  };
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const PAGES = { PageUp: [-1, 0], PageDown: [1, 0] };
const ENDS = { Home: [0], End: [-1] };

// Call `move(down, right)` when one of the keys, by default an arrow key, is pressed on a node.
function onArrow(node, move, keys = ARROWS) {
  node.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(...keys[event.key]);
  });
}

// One stop of the Tab key for many nodes: the last that had the focus, else `entry`. The keys go on from node `i` to
// number `to(i, down, right)`, if there is one. Nodes that the arrow keys move take Page Up and Page Down.
function rove(nodes, { entry = 0, to = (i, down, right) => i + down + right, keys = ARROWS } = {}) {
  const enter = (at) => nodes.forEach((node, i) => place(node, { tabindex: i === at ? 0 : -1 }));
  nodes.forEach((node, i) => {
    node.addEventListener("focus", () => enter(i));
    onArrow(node, (down, right) => nodes[to(i, down, right)]?.focus(), keys);
    onArrow(node, (end) => nodes.at(end).focus(), ENDS);
  });
  enter(entry);
}

// Round values from `low` to `high`, at most `most` of them, as the ticks of an axis.
function ticks(low, high, most = 6) {
  const step = [-3, -2, -1, 0, 1, 2, 3, 4]
    .flatMap((power) => [1, 2, 5].map((n) => Number(`${n}e${power}`)))
    .find((one) => (high - low) / one <= most - 1);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => Number(((first + i) * step).toFixed(3)));
}

// The row names of a table, to follow a row by pointer or by keyboard. Returns the button.
function rowName(row, token, label, choose) {
  row.addEventListener("pointerenter", choose);
  const node = button(add(row, "th", { scope: "row" }), token, choose, { "aria-label": label });
  node.addEventListener("focus", choose);
  row.style.cursor = "pointer";
  row.addEventListener("click", () => node.focus()); // anywhere: a name is small
  return node;
}

// Let `node` be moved by pointer and by arrow keys; `get` and `set` speak the panel's units. What is written on it
// begins its name, as on every button: who commands by voice says what there is to see.
function draggable(node, space, label, get, set) {
  const seen = node.textContent && `${node.textContent}, `;
  place(node, { role: "button", "aria-label": `${seen}${label}: drag, or use the arrow keys` });
  node.classList.add("d2lmini-handle");
  node.prepend(draw(node, "circle", { class: "d2lmini-reach" })); // what a finger can hit
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    event.preventDefault();
    node.focus();
  });
  node.addEventListener("pointermove", (event) => {
    if (node.hasPointerCapture(event.pointerId)) set(space.clamp(space.invert(event)));
  });
  onArrow(node, (down, right) => {
    const [x, y] = get();
    set(space.clamp([x + right * space.step[0], y - down * space.step[1]]));
  });
}

// The numbers that pack() of packing.py wrote; shares from 0 to 1 come as 0 to 255.
const unpack = (text, Kind = Uint8Array) =>
  new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

// Two lists of words in an SVG, of which the reader points at one by pointer or by keyboard: `pointed` is then
// {side, i}, else null. Focus stays when the pointer has left. `downwards`: the lists stand beside each other.
function wordPicker(svg, { entry, downwards }, changed) {
  const picker = { pointed: null, word, mark },
    nodes = [[], []];
  let focused = null;
  svg.addEventListener("pointerleave", () => {
    picker.pointed = focused;
    changed();
  });

  function word(side, i, label) {
    const node = draw(svg, "g", { role: "button", tabindex: -1, style: "cursor: pointer", "aria-label": label });
    const point = () => {
      picker.pointed = { side, i };
      changed();
    };
    node.addEventListener("pointerenter", point);
    node.addEventListener("click", () => node.focus());
    node.addEventListener("focus", () => {
      focused = { side, i };
      entry = [side, i];
      point();
    });
    node.addEventListener("blur", () => {
      focused = picker.pointed = null;
      changed();
    });
    node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") node.blur();
    });
    onArrow(node, (down, right) => {
      const [along, across] = downwards ? [down, right] : [right, down],
        list = nodes[side + across];
      list?.[across ? Math.min(i, list.length - 1) : i + along]?.focus();
    });
    onArrow(node, (end) => nodes[side].at(end).focus(), ENDS);
    nodes[side][i] = node;
    return node;
  }

  // Tab reaches one word, the last that had the focus; the arrow keys reach the others.
  function mark() {
    nodes.forEach((list, side) =>
      list.forEach((node, i) =>
        place(node, {
          tabindex: entry[0] === side && entry[1] === i ? 0 : -1,
          "aria-pressed": picker.pointed?.side === side && picker.pointed.i === i,
        }),
      ),
    );
  }
  return picker;
}

// The three words of the largest weights, as text. `weight` takes the index of a word.
const strongest = (words, weight) =>
  words
    .map((word, i) => [word, weight(i)])
    .filter((pair) => pair[1] >= 0.005)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
    .map(([word, w]) => `${word} ${w.toFixed(2)}`)
    .join(", ");

// Softmax of scores / temperature; minus infinity marks a masked score, a row of nothing else gives zeros.
function softmax(scores, temperature = 1) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp((score - top) / temperature));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}
