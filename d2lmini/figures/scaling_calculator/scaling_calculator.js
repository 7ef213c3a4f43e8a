// A scaling law as a calculator: loss along a budget on one side, models and the best sizes on the other.
import { add, button, choice, columns, fold, keep, place, scroller, slider, views } from "../base/index.js";
import { count, cut, FAR, flops, inside, loss, optimum, power, reckon, terms } from "../numbers/scaling_calculator.js";
import { lossChart, modelsChart } from "./charts.js";

/**
 * @typedef {import("../numbers/scaling_calculator.js").Model} Model
 * @typedef {import("../numbers/scaling_calculator.js").State} State
 * @typedef {import("../numbers/scaling_calculator.js").Found} Found
 * @typedef {(changes: { law?: number, parameters?: number, tokens?: number }) => void} Change
 */

const SLIDERS = { parameters: "parameters N", tokens: "tokens D", budget: "budget in FLOPs" };
const ROWS = [
  "training FLOPs, 6ND",
  "parameters N",
  "tokens D",
  "tokens per parameter",
  "floor E",
  "size: A / Nᵅ",
  "data: B / Dᵝ",
  "loss by this law",
];

// Law, model and sliders.
function settings(/** @type {Element} */ el, /** @type {State} */ state, /** @type {Change} */ change) {
  const { laws, models, limits } = state;
  const controls = add(el, "div", { class: "d2lmini-controls" });
  choice(
    controls,
    { label: "law", options: Object.fromEntries(laws.map(({ name }, i) => [i, name])), value: state.law },
    (n) => change({ law: Number(n) }),
  );
  const options = new Map([[-1, "of your own"], ...models.map(({ name }, i) => /** @type {const} */ ([i, name]))]);
  const which = models.length
    ? choice(controls, { label: "model", options, value: -1 }, (n) => {
        const m = models[Number(n)];
        change(m ? { parameters: m.parameters, tokens: m.tokens } : {});
      })
    : null;
  const sliding = add(el, "div", { class: "d2lmini-controls d2lmini-compact" });
  const ends = { ...limits, budget: [0, 1].map((i) => flops(limits.parameters[i], limits.tokens[i])) };
  const inputs = Object.entries(SLIDERS).map(([key, label]) => {
    const [min, max] = ends[key],
      say = key === "budget" ? power : count;
    const input = slider(sliding, { label, min, max, step: 0.01, value: min, scale: "log", say }, (x) =>
      change(key === "budget" ? { tokens: inside(x / 6 / state.parameters, limits.tokens) } : { [key]: x }),
    );
    return { input, say };
  });
  button(sliding, "go to the optimum", () => {
    const [parameters, tokens] = optimum(laws[state.law], flops(state.parameters, state.tokens));
    change({ parameters, tokens });
  });
  return (/** @type {Found} */ { N, D, C, chosen }) => {
    [N, D, C].forEach((value, i) => {
      const { input, say } = inputs[i],
        text = say(value);
      input.value = String(Math.log10(value));
      /** @type {Element} */ (input.nextElementSibling).textContent = text;
      place(input, { "aria-valuetext": text });
    });
    if (which) which.value = String(chosen);
  };
}

// The numbers of the choice and of the optimum.
function numberTable(/** @type {Element} */ el) {
  const body = columns(add(scroller(fold(el, "the numbers")), "table"), [null, "your choice", "the optimum"]);
  const cells = ROWS.map((text) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, text);
    return [add(row, "td"), add(row, "td")];
  });
  return (/** @type {Found} */ { law, N, D, C, bestN, bestD, known }) => {
    const column = (n, d) => [
      power(C),
      count(n),
      count(d),
      cut(d / n),
      ...[...terms(law, n, d), loss(law, n, d)].map((t) => t.toFixed(3)),
    ];
    [column(N, D), column(bestN, bestD)].forEach((values, i) =>
      values.forEach((text, n) => {
        cells[n][i].textContent = i && n && !known ? "no claim" : text;
      }),
    );
  };
}

// In sentences, with what the law says nothing of.
function tell(/** @type {Found} */ { law, N, L, bestN, least, mine, ideals, known }, /** @type {Model=} */ m) {
  const ranges = [law.parameters, law.tokens].map((ends) => ends.map(count).join(" to "));
  const whose = [
    mine.length ? `your ${mine.join(" and ")}` : "",
    ideals.length ? `the optimum's ${ideals.join(" and ")}` : "",
  ];
  return [
    m &&
      `${m.name}${m.note ? ` (N: ${m.note})` : ""}: ` +
        "the loss is what this law expects of its N and D, not a loss that was measured.",
    known
      ? `With the same FLOPs the optimum has ${cut(bestN / N)} times the parameters, and its loss is ` +
        `${(L - least).toFixed(3)} lower.`
      : `The optimum is more than ${FAR} times outside of the runs that the law was fitted to: ` +
        "of it the law says nothing.",
    mine.length || ideals.length
      ? `Outside of the law's range (N from ${ranges[0]}, D from ${ranges[1]}): ` +
        `${whose.filter(Boolean).join("; ")}. There the law is a guess.`
      : "Both are within the range of the runs that the law was fitted to.",
    law.note && `Of the law: ${law.note}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

function render({ model, el }) {
  const keys = ["laws", "models", "limits", "law", "parameters", "tokens"],
    state = /** @type {State} */ (Object.fromEntries(keys.map((key) => [key, model.get(key)])));
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes)) {
      state[key] = value;
      keep(model, key, value);
    }
    paint();
  };
  const paintSettings = settings(el, state, change),
    boxes = views(el, "view", ["loss", "models"]);
  const painters = [
    paintSettings,
    lossChart(boxes[0], state, change),
    modelsChart(boxes[1], state, change),
    numberTable(el),
  ];
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "margin-top: 6px; min-height: 4.2em",
  });
  function paint() {
    const found = reckon(state);
    for (const painter of painters) painter(found);
    note.textContent = tell(found, state.models[found.chosen]);
  }
  paint();
}

export default { render };
