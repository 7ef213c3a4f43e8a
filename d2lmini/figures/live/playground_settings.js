// What a reader can set in the playground: one flat object, as the address of the page has it.

/**
 * @typedef {{ first: string | number | boolean, choices?: (string | number | boolean)[],
 *   range?: { least: number, most: number, whole?: boolean } }} Setting
 */

const switched = [false, true];
// Of each setting: what it is at first, and its choices, or its range as {least, most, whole}.
/** @type {Record<string, Setting>} */
export const SETTINGS = {
  task: { first: "reverse", choices: ["copy", "reverse", "sort", "look up", "recall", "add", "text"] },
  size: { first: 6, range: { least: 1, most: 64, whole: true } }, // letters, pairs, digits, characters at a time
  letters: { first: 10, range: { least: 2, most: 26, whole: true } },
  backwards: { first: false, choices: switched }, // a sum is written from its last digit on
  text: { first: "shakespeare", choices: ["shakespeare", "names", "own"] },
  examples: { first: 0, range: { least: 0, most: 100_000, whole: true } }, // to train on, not of a text; 0: all
  longer: { first: 0, range: { least: 0, most: 128, whole: true } }, // a size that is scored besides; 0: none
  causal: { first: true, choices: switched },
  blocks: { first: 2, range: { least: 1, most: 4, whole: true } },
  heads: { first: 2, choices: [1, 2, 4, 8] },
  width: { first: 32, choices: [16, 32, 64] },
  positions: { first: "learned", choices: ["none", "learned", "sines", "rotary", "alibi"] },
  norm: { first: "before", choices: ["before", "after", "none"] },
  residual: { first: true, choices: switched },
  ffn: { first: true, choices: switched },
  optimizer: { first: "adamw", choices: ["sgd", "adam", "adamw"] },
  rate: { first: 0.003, range: { least: 1e-5, most: 10 } },
  warmup: { first: 0, range: { least: 0, most: 1000, whole: true } },
  decay: { first: 0.01, range: { least: 0, most: 10 } }, // weight decay of AdamW
  clip: { first: 0, range: { least: 0, most: 100 } }, // the largest norm of the gradients; 0: any
  batch: { first: 16, choices: [4, 8, 16, 32, 64] },
  seed: { first: 1, range: { least: 1, most: 50, whole: true } },
};

/**
 * @typedef {{ task: string, size: number, letters: number, backwards: boolean, text: string, examples: number,
 *   longer: number, causal: boolean, blocks: number, heads: number, width: number,
 *   positions: "none" | "learned" | "sines" | "rotary" | "alibi", norm: "before" | "after" | "none", residual: boolean,
 *   ffn: boolean, optimizer: string, rate: number, warmup: number, decay: number, clip: number, batch: number,
 *   seed: number }} Settings
 */

/** @returns {Settings} */
export const firstSettings = () =>
  /** @type {any} */ (Object.fromEntries(Object.entries(SETTINGS).map(([key, { first }]) => [key, first])));

/** @param {Setting} setting @param {any} value */
function fits({ choices, range }, value) {
  if (!range) return choices?.includes(value) ?? false;
  return (
    typeof value === "number" &&
    value >= range.least &&
    value <= range.most &&
    (!range.whole || Number.isInteger(value))
  );
}

// Settings in an address, as `task=copy&blocks=1`: {settings, unknown}, the latter what is none, or does not fit.
/** @param {string} address */
export function settingsOf(address) {
  const settings = /** @type {Record<string, any>} */ (firstSettings()),
    unknown = /** @type {string[]} */ ([]);
  for (const [given, text] of new URLSearchParams(address)) {
    const key = given === "optimiser" ? "optimizer" : given; // the name of before, until 1.0
    const about = Object.hasOwn(SETTINGS, key) ? SETTINGS[key] : null;
    const read = about?.choices?.find((choice) => String(choice) === text) ?? Number(text || Number.NaN);
    if (about && fits(about, read)) settings[key] = read;
    else unknown.push(`${key}=${text}`);
  }
  return { settings: /** @type {Settings} */ (settings), unknown };
}

// The address of settings: those that are not as at first.
/** @param {Settings} settings */
export function addressOf(settings) {
  const changed = Object.entries(settings).filter(([key, value]) => SETTINGS[key] && value !== SETTINGS[key].first);
  return new URLSearchParams(changed.map(([key, value]) => [key, String(value)])).toString();
}

// What the task `train` takes. `text`: what the task "text" learns.
/** @param {Settings} settings */
export function trainOptions(settings, text = "") {
  const { task, size, letters, backwards, positions, norm, ffn, optimizer, rate, warmup, decay, clip, longer } =
    settings;
  /** @type {import("./learner_tasks.js").Data} */
  const data = { name: task, size, batch: settings.batch };
  if (["copy", "reverse", "sort", "look up", "recall"].includes(task)) data.letters = letters;
  if (task === "add") data.backwards = backwards;
  if (task === "text") data.text = text;
  else if (settings.examples) data.examples = settings.examples;
  return {
    model: {
      num_hiddens: settings.width,
      num_heads: settings.heads,
      num_blks: settings.blocks,
      causal: task === "text" || settings.causal,
      positions: positions === "none" ? null : positions,
      norm: "layer",
      norm_place: norm === "none" ? null : norm,
      residual: settings.residual,
      ffn: ffn ? "relu" : null,
    },
    optimizer: {
      name: optimizer,
      rate,
      warmup,
      clip: clip || null,
      ...(optimizer === "adamw" && { weight_decay: decay }),
      ...(optimizer === "sgd" && { momentum: 0.9 }),
    },
    data,
    seed: settings.seed,
    longer: longer && longer !== size ? [longer] : [],
  };
}
