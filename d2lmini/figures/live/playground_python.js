// The cell that trains with the package what the playground trains.
import { trainOptions } from "./playground_settings.js";

const CELL_WIDTH = 88, // characters of a line
  EPOCH_BATCHES = 100,
  LEAST_STEPS = 1000;
/** @type {Record<string, string | boolean>} */
const CONFIG_DEFAULTS = { norm: "layer", norm_place: "before", residual: true, ffn: "relu", causal: true }; // of `TinyConfig`

/** @param {unknown} value */
function pythonValue(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

const namedArguments = (/** @type {object} */ values) =>
  Object.entries(values).map(([name, value]) => `${name}=${pythonValue(value)}`);

// A call on one line, or with its arguments on lines of their own.
/** @param {string} start @param {string[]} given */
function pythonCall(start, given) {
  const line = `${start}(${given.join(", ")})`;
  if (line.length <= CELL_WIDTH) return line;
  const lines = [""];
  for (const one of given) {
    const last = lines.at(-1);
    if (last && 4 + last.length + one.length + 2 > CELL_WIDTH) lines.push(`${one},`);
    else lines[lines.length - 1] += `${last && " "}${one},`;
  }
  return [`${start}(`, ...lines.map((one) => `    ${one}`), ")"].join("\n");
}

/** @param {string} text */
function openedText(text) {
  const read = text === "own" ? 'open("mine.txt", encoding="utf-8").read()' : `playground_text("${text}")`;
  return `text = ${read}`;
}

// A class where the optimizer is not the model's own.
/** @param {string} name */
function optimizerClass(name) {
  /** @type {Record<string, string>} */
  const made = { sgd: "SGD(self.parameters(), lr=self.lr, momentum=0.9)", adam: "Adam(self.parameters(), lr=self.lr)" };
  return `class Model(d2l.TinyTransformer):
    def configure_optimizers(self):
        return torch.optim.${made[name]}
`;
}

/** @param {string | null} sizes */
function printedScores(sizes) {
  const lines = [
    `X, Y = data.held_out(${sizes ? "size" : ""})`,
    "with torch.no_grad():",
    "    scores = model(X)",
    "right = (scores.argmax(-1) == Y)[Y >= 0].double().mean()",
    `print(f"${sizes ? "size {size}" : "held out"}: loss {model.loss(scores, Y):.3f}, {right:.1%} of tokens right")`,
  ];
  return sizes ? [`for size in ${sizes}:`, ...lines.map((line) => `    ${line}`)] : lines;
}

// The text of the cell. `steps`: how many the page has made.
/** @param {import("./playground_settings.js").Settings} settings */
export function pythonOf(settings, steps = 0) {
  const { model, optimizer, data, seed, longer } = trainOptions(settings);
  const { name: task, batch, text, examples: num_train, ...options } = data,
    ofText = text !== undefined,
    { causal } = model;
  if (!options.backwards) delete options.backwards;
  const made = {
    ...options,
    ...(!causal && { causal }),
    batch_size: batch,
    num_batches: EPOCH_BATCHES,
    ...(num_train && { num_train }),
    seed,
  };
  const { norm, norm_place, residual, ffn, causal: _, ...sizes } = model,
    parts = Object.entries({ norm, norm_place, residual, ffn, causal }),
    unusual = Object.fromEntries(parts.filter(([name, value]) => value !== CONFIG_DEFAULTS[name]));
  const { name: optimizerName, rate, warmup, clip, weight_decay } = optimizer,
    own = optimizerName === "adamw";
  const number = Math.max(LEAST_STEPS, steps),
    trainer = { max_epochs: Math.ceil(number / EPOCH_BATCHES) };
  if (number % EPOCH_BATCHES) trainer.max_steps = number;
  if (clip !== null) trainer.gradient_clip_val = clip;
  const all = longer.length ? `(${[data.size, ...longer].join(", ")})` : null;
  return [
    "import torch",
    "import d2lmini as d2l",
    ...(ofText && settings.text !== "own" ? ["from d2lmini.data.text import playground_text"] : []),
    "",
    ...(own ? [] : [optimizerClass(optimizerName)]),
    ...(ofText ? [openedText(settings.text)] : []),
    pythonCall("data = d2l.PlaygroundData", [
      pythonValue(task),
      ...(ofText ? ["text=text"] : []),
      ...namedArguments(made),
    ]),
    pythonCall("config = d2l.TinyConfig", [
      "len(data.tokens)",
      all ? `max(map(data.length, ${all}))` : "data.length()",
      ...namedArguments({ ...sizes, ...unusual }),
    ]),
    `torch.manual_seed(${seed})`,
    pythonCall(`model = ${own ? "d2l.TinyTransformer" : "Model"}`, [
      "config",
      ...namedArguments({ lr: rate, ...(own && { weight_decay }) }),
    ]),
    pythonCall("trainer = d2l.Trainer", [
      ...namedArguments(trainer),
      ...(warmup > 1 ? [`schedule=lambda step: min(1, step / ${warmup})`] : []),
    ]),
    "trainer.fit(model, data)",
    "",
    ...printedScores(all),
    "",
  ].join("\n");
}
