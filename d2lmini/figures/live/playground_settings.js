// What a reader can set in the playground: one flat object, as the address of the page has it.

const switched = [false, true];
// Of each setting: what it is at first, and its choices, or its range as {least, most, whole}.
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
  optimiser: { first: "adamw", choices: ["sgd", "adam", "adamw"] },
  rate: { first: 0.003, range: { least: 1e-5, most: 10 } },
  warmup: { first: 0, range: { least: 0, most: 1000, whole: true } },
  decay: { first: 0.01, range: { least: 0, most: 10 } }, // weight decay of AdamW
  clip: { first: 0, range: { least: 0, most: 100 } }, // the largest norm of the gradients; 0: any
  batch: { first: 16, choices: [4, 8, 16, 32, 64] },
  seed: { first: 1, range: { least: 1, most: 50, whole: true } },
};

export const firstSettings = () => Object.fromEntries(Object.entries(SETTINGS).map(([key, { first }]) => [key, first]));

function fits({ choices, range }, value) {
  if (choices) return choices.includes(value);
  return (
    typeof value === "number" &&
    value >= range.least &&
    value <= range.most &&
    (!range.whole || Number.isInteger(value))
  );
}

// Settings in an address, as `task=copy&blocks=1`: {settings, unknown}, the latter what is none, or does not fit.
export function settingsOf(address) {
  const settings = firstSettings(),
    unknown = [];
  for (const [key, text] of new URLSearchParams(address)) {
    const about = Object.hasOwn(SETTINGS, key) ? SETTINGS[key] : null;
    const value = typeof about?.first === "number" ? Number(text || Number.NaN) : text,
      read = about?.choices === switched ? { false: false, true: true }[value] : value;
    if (about && fits(about, read)) settings[key] = read;
    else unknown.push(`${key}=${text}`);
  }
  return { settings, unknown };
}

// The address of settings: those that are not as at first.
export function addressOf(settings) {
  const changed = Object.entries(settings).filter(([key, value]) => SETTINGS[key] && value !== SETTINGS[key].first);
  return new URLSearchParams(changed.map(([key, value]) => [key, String(value)])).toString();
}

// What the task `train` takes. `text`: what the task "text" learns.
export function trainOptions(settings, text = "") {
  const { task, size, letters, backwards, positions, norm, ffn, optimiser, rate, warmup, decay, clip, longer } =
    settings;
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
    optimiser: {
      name: optimiser,
      rate,
      warmup,
      clip: clip || null,
      ...(optimiser === "adamw" && { weight_decay: decay }),
      ...(optimiser === "sgd" && { momentum: 0.9 }),
    },
    data,
    seed: settings.seed,
    longer: longer && longer !== size ? [longer] : [],
  };
}
