// A picture is finished pixel by pixel: what each pixel was drawn from, and where a head of the last layer looked.
import { add, button, choice, draw, fold, keep, panel, place, slider, unpack } from "./base/index.js";

function render({ model, el }) {
  const levels = model.get("levels"),
    names = model.get("names"),
    truth = model.get("true");
  const walks = model.get("walks").map((samples) =>
    samples.map((walk) => ({
      ...walk,
      probabilities: unpack(walk.probabilities),
      weights: unpack(walk.weights),
      where: unpack(walk.where, walk.size[0] * walk.size[1] > 256 ? Uint16Array : Uint8Array),
    })),
  );
  const {
    size: [height, width],
    given,
    heads,
    mean_heads: mean,
  } = walks[0][0];
  const first = given * width,
    steps = height * width - first,
    cell = 20,
    K = levels.length;
  const now = Object.fromEntries(["picture", "sample", "head", "step"].map((key) => [key, model.get(key)]));
  const walk = () => walks[now.picture][now.sample];
  const grey = (k) =>
    `rgb(${Array(3)
      .fill(Math.round(255 * levels[k]))
      .join()})`;
  const percent = (k) => `${Math.round(100 * levels[k])} %`;
  const counted = (word, n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [i, `${word} ${i + 1}`]));
  let timer = null;

  const controls = add(el, "div", { class: "d2lmini-controls" });
  const change = (key) => (value) => {
    now[key] = Number(value);
    keep(model, key, now[key]);
    build();
  };
  choice(controls, { label: "picture", options: { ...names }, value: now.picture }, change("picture"));
  const sampleBox = add(controls, "span");
  if (heads > 1) choice(controls, { label: "head", options: counted("head", heads), value: now.head }, change("head"));

  const walking = add(el, "div", { class: "d2lmini-controls" });
  const go = (step) => {
    bar.value = Math.min(steps, Math.max(1, step));
    bar.dispatchEvent(new Event("input"));
  };
  const back = button(
    walking,
    "← back",
    () => {
      stop();
      go(now.step - 1);
    },
    { "aria-label": "one pixel back" },
  );
  const player = button(walking, "▶ play", () => (timer ? stop() : play()), { "aria-label": "play" });
  const forth = button(
    walking,
    "next →",
    () => {
      stop();
      go(now.step + 1);
    },
    { "aria-label": "next pixel" },
  );
  const bar = slider(walking, { label: "pixel", min: 1, max: steps, step: 1, value: now.step, digits: 0 }, (step) => {
    now.step = step;
    keep(model, "step", step);
    paint();
  });
  bar.addEventListener("pointerdown", stop);
  bar.addEventListener("keydown", stop);

  function play() {
    if (now.step === steps) go(1);
    note.setAttribute("aria-live", "off"); // nobody can listen to ten pixels a second
    timer = setInterval(() => {
      if (now.step < steps && el.isConnected) go(now.step + 1);
      else stop();
    }, 100);
    named("❚❚ pause", "pause");
  }

  function stop() {
    if (!timer) return;
    clearInterval(timer);
    timer = null;
    note.setAttribute("aria-live", "polite");
    named("▶ play", "play");
    paint();
  }

  const named = (text, label) => {
    player.textContent = text;
    player.setAttribute("aria-label", label);
  };

  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 4.6em; margin-bottom: 0.4rem",
  });
  const panels = add(el, "div", { class: "d2lmini-panels d2lmini-pair" });
  const canvas = (box, label, caption) => {
    const space = panel(box, { width: cell * width, height: cell * height, x: [0, width], y: [height, 0], label });
    space.svg.style.cssText = "max-width: 17rem; margin: 0 auto";
    const rects = Array.from({ length: height * width }, (_, i) =>
      draw(space.svg, "rect", {
        x: cell * (i % width),
        y: cell * Math.floor(i / width),
        width: cell,
        height: cell,
        "shape-rendering": "crispEdges",
      }),
    );
    draw(space.svg, "line", {
      x1: 0,
      x2: cell * width,
      y1: cell * given,
      y2: cell * given,
      stroke: "var(--orange)",
      "stroke-width": 2,
      "stroke-dasharray": "6 4",
    });
    box.style.flex = "1 1 12rem"; // three in a row
    if (caption) add(box, "figcaption", {}, caption);
    return { svg: space.svg, rects };
  };
  const page = canvas(
    add(panels, "figure"),
    "the picture as far as it is written",
    "given above the dashed line, written below it; circles: where the model looks for the pixel in the orange frame",
  );
  const hatch = `d2lmini-hatch-${Math.random().toString(36).slice(2)}`;
  const pattern = draw(draw(page.svg, "defs"), "pattern", {
    id: hatch,
    width: 8,
    height: 8,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  draw(pattern, "rect", { width: 2, height: 8, fill: "currentColor", opacity: 0.18 });
  const eyes = Array.from({ length: walks[0][0].shown }, () =>
    draw(page.svg, "circle", { fill: "var(--blue)", stroke: "white", "stroke-width": 1.5, "pointer-events": "none" }),
  );
  const frame = draw(page.svg, "rect", {
    width: cell,
    height: cell,
    fill: "none",
    stroke: "var(--orange)",
    "stroke-width": 3,
  });
  page.svg.addEventListener("click", (event) => {
    const box = page.svg.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    const step = row * width + column - first + 1;
    if (step >= 1 && step <= steps) {
      stop();
      go(step);
    }
  });

  const box = add(panels, "figure"),
    one = Math.max(24, 200 / K), // of the bars
    wide = one * K,
    floor = 150;
  const bars = panel(box, {
    width: wide,
    height: 185,
    x: [0, 1],
    y: [0, 1],
    label: "the probability of each grey value",
  });
  box.style.flex = "1 1 12rem";
  const columns = levels.map((_, k) => {
    draw(bars.svg, "rect", {
      x: one * (k + 0.5) - 9,
      y: floor + 8,
      width: 18,
      height: 18,
      fill: grey(k),
      stroke: "#8888",
    });
    return {
      bar: draw(bars.svg, "rect", { x: one * (k + 0.5) - 9, width: 18 }),
      number: draw(bars.svg, "text", {
        x: Math.min(wide - 14, Math.max(14, one * (k + 0.5))),
        "text-anchor": "middle",
      }),
    };
  });
  draw(bars.svg, "line", { x1: 0, x2: wide, y1: floor, y2: floor, stroke: "#8888" });
  add(
    box,
    "figcaption",
    {},
    "what the pixel was drawn from: the probability of each grey value; in orange the one drawn",
  );
  const original = truth && canvas(fold(panels, "the true picture"), "the true picture");

  function build() {
    const samples = walks[now.picture].length;
    now.sample = Math.min(now.sample, samples - 1);
    if (now.sample !== model.get("sample")) keep(model, "sample", now.sample);
    if (sampleBox.dataset.samples !== String(samples)) {
      // not made anew under the reader's hands
      sampleBox.dataset.samples = samples;
      sampleBox.replaceChildren();
      if (samples > 1)
        choice(
          sampleBox,
          { label: "sample", options: counted("sample", samples), value: now.sample },
          change("sample"),
        );
    }
    if (original) original.rects.forEach((rect, i) => place(rect, { fill: grey(truth[now.picture][i]) }));
    paint();
  }

  function paint() {
    const { pixels, probabilities, where, weights, shown } = walk(),
      index = first + now.step - 1,
      drawn = pixels[index];
    page.rects.forEach((rect, i) => place(rect, { fill: i <= index ? grey(pixels[i]) : `url(#${hatch})` }));
    place(frame, { x: cell * (index % width), y: cell * Math.floor(index / width) });
    const start = ((now.step - 1) * heads + now.head) * shown;
    const seen = eyes.map((_, n) => [where[start + n], weights[start + n] / 255]);
    eyes.forEach((eye, n) => {
      const [at, weight] = seen[n],
        i = at - 1; // place 0 is the start sign, and no pixel
      place(eye, {
        cx: cell * ((i % width) + 0.5),
        cy: cell * (Math.floor(i / width) + 0.5),
        r: Math.min(10, 13 * Math.sqrt(weight)),
      });
      eye.style.display = at > 0 && weight > 0.01 ? "" : "none";
    });
    const p = levels.map((_, k) => probabilities[(now.step - 1) * K + k] / 255);
    columns.forEach(({ bar, number }, k) => {
      const top = floor - 125 * p[k];
      place(bar, { y: top, height: floor - top, fill: k === drawn ? "var(--orange)" : "var(--blue)" });
      place(number, { y: top - 5 });
      number.textContent = k === drawn ? p[k].toFixed(2) : "";
    });
    // not disabled: a button that is would lose the focus
    back.setAttribute("aria-disabled", now.step === 1);
    forth.setAttribute("aria-disabled", now.step === steps);
    const likeliest = p.indexOf(Math.max(...p)),
      better = p[likeliest] > p[drawn];
    const bits = p[drawn] > 0 ? ` (${(-Math.log2(p[drawn])).toFixed(1)} bits)` : "";
    note.textContent =
      `Pixel ${now.step} of ${steps}, row ${Math.floor(index / width) + 1}, column ${(index % width) + 1}: ` +
      `${percent(drawn)} of white was drawn, with probability ${p[drawn].toFixed(2)}${bits}` +
      (better ? `; likelier was ${percent(likeliest)}, with ${p[likeliest].toFixed(2)}. ` : ", the likeliest. ") +
      `${mean ? "The last layer" : `Head ${now.head + 1} of the last layer`} looks most at ` +
      `${seen
        .filter(([, w]) => w >= 0.005)
        .slice(0, 3)
        .map(([at, w]) => `${direction(at, index)} (${w.toFixed(2)})`)
        .join(", ")}; ` +
      `the ${shown} strongest have ${seen.reduce((sum, [, w]) => sum + w, 0).toFixed(2)} of its weight.`;
  }

  function direction(at, index) {
    if (at === 0) return "the start sign";
    const up = Math.floor(index / width) - Math.floor((at - 1) / width),
      left = (index % width) - ((at - 1) % width);
    if (up === 0) return left === 1 ? "the pixel before" : `the one ${left} to the left`;
    if (left === 0) return up === 1 ? "the pixel above" : `the one ${up} above`;
    return `the one ${up} up and ${Math.abs(left)} to the ${left > 0 ? "left" : "right"}`;
  }
  build();
}

export default { render };
