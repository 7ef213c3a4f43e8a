// One run of the playground: what was seen of it, in as few points as a screen shows.
import { SETTINGS } from "../live/playground_settings.js";

const RUN_POINTS = 240,
  RECENT = 20; // steps: the loss that is shown is the mean of theirs, whatever slices they came in
const playgroundPercent = (/** @type {number} */ share) => `${(100 * share).toFixed(1)}\u00a0%`;

/**
 * @typedef {import("../live/playground_settings.js").Settings} Settings
 * @typedef {import("../live/learner_tasks.js").Exploded} Exploded
 * @typedef {{ loss: number, tokens: number, sequences: number }} Scores
 * @typedef {{ longer: (Scores & { size: number })[] }} Longer
 * @typedef {{ embedding: number, blocks: number[], head: number }} Gradients
 * @typedef {{ tokens: number[], weights: import("../live/tensor.js").Numbers[] }} Look
 * @typedef {{ step: number, losses: Float32Array, norm: number, rate: number | null, gradients: Gradients | null,
 *   heldOut: (Scores & Longer) | null, look: Look | null, sample: string | null, parameters: number,
 *   milliseconds: number }} Told
 */

export class PlaygroundRun {
  /** @param {Settings} settings @param {string} key */
  constructor(settings, key) {
    this.settings = { ...settings };
    this.key = key;
    this.made = false;
    this.step = this.milliseconds = this.pace = 0;
    this.loss = this.norm = this.rate = this.parameters = /** @type {number | null} */ (null);
    this.gradients = /** @type {Told["gradients"]} */ (null);
    this.heldOut = /** @type {(Scores & Longer & { step: number }) | null} */ (null);
    this.look = /** @type {Told["look"]} */ (null);
    this.sample = "";
    this.exploded = /** @type {Exploded | null} */ (null);
    this.recent = /** @type {number[]} */ ([]); // losses
    this.wide = 1; // steps of a point
    this.points = /** @type {{ step: number, sum: number, count: number }[]} */ ([]); // of losses
    this.held = /** @type {{ step: number, loss: number, longer: number[] }[]} */ ([]);
    this.changes = /** @type {string[]} */ ([]); // what was changed while it went on
  }

  // What the worker tells of a slice.
  /** @param {Told} told */
  take({ step, losses, norm, rate, gradients, heldOut, look, sample, parameters, milliseconds }) {
    this.made = true;
    losses.forEach((value, i) => {
      this.#put(step - losses.length + i + 1, value);
    });
    this.step = step;
    this.parameters = parameters;
    if (losses.length) {
      this.recent = [...this.recent, ...losses].slice(-RECENT);
      this.loss = this.recent.reduce((a, b) => a + b) / this.recent.length;
      this.norm = norm;
      this.rate = rate;
      this.gradients = gradients;
      this.milliseconds += milliseconds;
      const now = milliseconds / losses.length;
      this.pace = this.pace ? 0.8 * this.pace + 0.2 * now : now; // milliseconds of a step
    }
    if (heldOut) {
      this.heldOut = { ...heldOut, step };
      this.held.push({ step, loss: heldOut.loss, longer: heldOut.longer.map(({ loss }) => loss) });
      if (this.held.length > RUN_POINTS / 4) this.held = this.held.filter((_, i) => i % 2 === 0);
    }
    if (look) this.look = look;
    if (sample) this.sample = sample;
  }

  /** @param {number} step @param {number} loss */
  #put(step, loss) {
    const last = this.points.at(-1);
    if (last && last.count < this.wide) Object.assign(last, { step, sum: last.sum + loss, count: last.count + 1 });
    else this.points.push({ step, sum: loss, count: 1 });
    if (this.points.length <= RUN_POINTS) return;
    this.wide *= 2;
    this.points = this.points.flatMap((one, i, all) => {
      const next = all[i + 1];
      if (i % 2) return [];
      return next ? [{ step: next.step, sum: one.sum + next.sum, count: one.count + next.count }] : [one];
    });
  }

  // Other settings that it goes on with.
  /** @param {Settings} settings */
  change(settings) {
    for (const [key, value] of Object.entries(settings))
      if (value !== this.settings[key] && this.step)
        this.changes.push(`${key} ${this.settings[key]} → ${value} at step ${this.step}`);
    this.settings = { ...settings };
  }

  // How well it does, in few words.
  scores() {
    const loss = this.loss === null ? "no loss yet" : `loss ${this.loss.toFixed(3)}`;
    return this.heldOut ? `${loss}, held out ${playgroundPercent(this.heldOut.tokens)} of tokens right` : loss;
  }

  // All of its numbers.
  told() {
    const { heldOut, settings } = this,
      text = settings.task === "text",
      whole = (/** @type {Scores} */ one) => (text ? "" : `, ${playgroundPercent(one.sequences)} of whole answers`);
    const parts = [
      `Step ${this.step.toLocaleString("en")}`,
      `${(this.milliseconds / 1000).toFixed(1)} s of training`,
      this.pace ? `${(1000 / this.pace).toFixed(0)} steps a second` : "",
      this.parameters ? `${this.parameters.toLocaleString("en")} parameters` : "",
      this.loss === null ? "" : `loss ${this.loss.toFixed(3)}`,
    ];
    if (heldOut) {
      const scored = (/** @type {Scores} */ one) =>
          `loss ${one.loss.toFixed(3)}, ${playgroundPercent(one.tokens)} of tokens right${whole(one)}`,
        when = heldOut.step === this.step ? "" : ` at step ${heldOut.step.toLocaleString("en")}`;
      parts.push(`held out${when}: ${scored(heldOut)}`);
      for (const one of heldOut.longer) parts.push(`at ${one.size}: ${scored(one)}`);
    }
    return `${parts.filter(Boolean).join(" · ")}.`;
  }

  // The loss was no number any more, and the model is where it was at a step before.
  /** @param {number} step @param {Exploded} exploded */
  goBack(step, exploded) {
    this.step = step;
    this.exploded = exploded;
    this.made = true;
    this.recent = [];
    this.points = this.points.filter((point) => point.step <= step);
    this.held = this.held.filter((point) => point.step <= step);
    if (this.heldOut && this.heldOut.step > step) this.heldOut = null;
    const last = this.points.at(-1);
    this.loss = last ? last.sum / last.count : null;
    this.gradients = this.look = null;
  }
}

/** @type {Record<string, string>} */
const NAMES = { ffn: "feed-forward", letters: "alphabet", examples: "examples to learn from" };
/** @type {Record<string, string>} */
const NOTHING = { examples: "all examples", longer: "one length scored", clip: "no clipping" };

// How settings differ: of each of some, the words for what not all of them have.
/** @param {Settings[]} all */
export function playgroundDifferences(all) {
  const keys = Object.keys(SETTINGS).filter((key) => all.some((one) => one[key] !== all[0][key]));
  const said = (/** @type {string} */ key, value) => {
    const name = NAMES[key] ?? key;
    if (value === 0) return NOTHING[key] ?? `no ${name}`;
    if (typeof value === "boolean") return value ? name : `${key === "residual" ? "no" : "not"} ${name}`;
    return key === "task" ? value : `${name} ${value}`;
  };
  return all.map((one) => keys.map((key) => said(key, one[key])).join(", "));
}
