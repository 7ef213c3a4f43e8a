// What the playground's settings come to: a task and its examples, or a sentence about what does not fit.
import { randomNumbers } from "../live/filters.js";
import { trainOptions } from "../live/playground_settings.js";
import { PlaygroundTask } from "../live/playground_tasks.js";

/**
 * @typedef {import("../live/playground_settings.js").Settings} Settings
 * @typedef {{ task: PlaygroundTask, read: (written: string) => number[], write: (tokens: number[]) => string }} Fit
 * @typedef {{ tokens: number[], prompt: string[], right: string[], given: boolean[], guess: string[] | null }} Shown
 */

// A module of one instruction that only a browser with SIMD takes.
const SIMD_BYTES = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];

// Why a machine should begin with a small model, or null.
export function weakMachine() {
  const { deviceMemory } = /** @type {{ deviceMemory?: number }} */ (navigator);
  if (deviceMemory !== undefined && deviceMemory < 1) return "This machine has little memory";
  const fast = globalThis.WebAssembly?.validate(Uint8Array.from(SIMD_BYTES));
  return fast ? null : "This browser has no SIMD and multiplies in plain JavaScript";
}

// {fit, wrong}: `wrong` is a sentence, or empty. `fit` is null, too, where the text is not there yet (null); else it
// has the task, and turns what a reader writes for the heads into tokens (`read`, which throws a sentence) and back
// (`write`).
/** @param {Settings} settings @param {string | null} text @returns {{ fit: Fit | null, wrong: string }} */
export function playgroundFit(settings, text) {
  const { task: name, size, letters } = settings,
    not = (/** @type {string} */ wrong) => ({ fit: null, wrong });
  if (text === null) return not("");
  if (name === "text" && settings.text === "own" && !text)
    return not("Paste a text of your own: it stays on this page.");
  if (name === "look up" && size > letters)
    return not(`There are ${size} pairs to look up, but only ${letters} letters in the alphabet: choose fewer pairs.`);
  try {
    const { data, longer, model } = trainOptions(settings, text),
      task = new PlaygroundTask(data),
      longest = Math.max(...[task.size, ...longer].map((one) => task.lengthOf(one, model.causal))),
      marked = task.tokens.includes("\n") && !task.tokens.includes("↵");
    const read = (/** @type {string} */ written) => {
      const tokens = task.encode(marked ? written.replaceAll("↵", "\n") : written);
      if (!tokens.length) throw new Error("it needs at least one token");
      if (tokens.length > longest) throw new Error(`this model reads at most ${longest} tokens`);
      return tokens;
    };
    const write = (/** @type {number[]} */ tokens) =>
      marked ? task.decode(tokens).replaceAll("\n", "↵") : task.decode(tokens);
    return { fit: { task, read, write }, wrong: "" };
  } catch (/** @type {any} */ error) {
    return not(`This does not fit: ${error.message}.`);
  }
}

// Held-out examples of a task: {tokens, prompt, right, given, guess}; prompt, right and guess are letters.
/** @param {PlaygroundTask} task @param {Settings} settings @returns {Shown[]} */
export function playgroundShown(task, settings) {
  const { causal } = trainOptions(settings).model,
    random = randomNumbers(settings.seed + 3),
    letters = (/** @type {number[]} */ ids) => ids.map((id) => task.tokens[id]);
  return Array.from({ length: task.everywhere ? 3 : 6 }, () => {
    const one = task.example(random, { heldOut: true }),
      { tokens, targets } = task.lay([one], causal),
      first = tokens.length - one.answer.length;
    return {
      tokens: [...tokens],
      prompt: letters(one.prompt),
      right: letters(one.answer),
      given: one.answer.map((_, i) => targets[first + i] < 0),
      guess: null,
    };
  });
}

// What a model says to an example by its probabilities, each token after the right ones.
/** @param {Shown} one @param {Float32Array} probabilities @param {PlaygroundTask} task */
export function playgroundGuess(one, probabilities, task) {
  const V = task.tokens.length,
    first = one.tokens.length - one.right.length;
  return one.right.map((letter, i) => {
    if (one.given[i]) return letter;
    const row = probabilities.subarray((first + i) * V, (first + i + 1) * V);
    return task.tokens[row.indexOf(Math.max(...row))];
  });
}
