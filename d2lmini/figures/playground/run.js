// One run of the playground: what was seen of it, in as few points as a screen shows.
import { SETTINGS } from "../live/playground_settings.js";

const RUN_POINTS = 240,
  RECENT = 20; // steps: the loss that is shown is the mean of theirs, whatever slices they came in
const playgroundPercent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

export class PlaygroundRun {
  constructor(settings, key) {
    Object.assign(this, { settings: { ...settings }, key, made: false, step: 0, milliseconds: 0, pace: 0 });
    Object.assign(this, { loss: null, norm: null, rate: null, gradients: null, heldOut: null, look: null, sample: "" });
    this.parameters = null;
    this.exploded = null;
    this.recent = []; // losses
    this.wide = 1; // steps of a point
    this.points = []; // {step, sum, count} of losses
    this.held = []; // {step, loss, longer}
    this.changes = []; // what was changed while it went on
  }

  // What the worker tells of a slice.
  take({ step, losses, norm, rate, gradients, heldOut, look, sample, parameters, milliseconds }) {
    this.made = true;
    losses.forEach((value, i) => {
      this.#put(step - losses.length + i + 1, value);
    });
    Object.assign(this, { step, parameters });
    if (losses.length) {
      this.recent = [...this.recent, ...losses].slice(-RECENT);
      this.loss = this.recent.reduce((a, b) => a + b) / this.recent.length;
      Object.assign(this, { norm, rate, gradients });
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
      whole = (one) => (text ? "" : `, ${playgroundPercent(one.sequences)} of whole answers`);
    const parts = [
      `Step ${this.step.toLocaleString("en")}`,
      `${(this.milliseconds / 1000).toFixed(1)} s of training`,
      this.pace ? `${(1000 / this.pace).toFixed(0)} steps a second` : "",
      this.parameters ? `${this.parameters.toLocaleString("en")} parameters` : "",
      this.loss === null ? "" : `loss ${this.loss.toFixed(3)}`,
    ];
    if (heldOut) {
      const scored = (one) =>
          `loss ${one.loss.toFixed(3)}, ${playgroundPercent(one.tokens)} of tokens right${whole(one)}`,
        when = heldOut.step === this.step ? "" : ` at step ${heldOut.step.toLocaleString("en")}`;
      parts.push(`held out${when}: ${scored(heldOut)}`);
      for (const one of heldOut.longer) parts.push(`at ${one.size}: ${scored(one)}`);
    }
    return `${parts.filter(Boolean).join(" · ")}.`;
  }

  // The loss was no number any more, and the model is where it was at a step before.
  goBack(step, exploded) {
    Object.assign(this, { step, exploded, made: true, recent: [] });
    this.points = this.points.filter((point) => point.step <= step);
    this.held = this.held.filter((point) => point.step <= step);
    if (this.heldOut?.step > step) this.heldOut = null;
    const last = this.points.at(-1);
    Object.assign(this, { loss: last ? last.sum / last.count : null, gradients: null, look: null });
  }
}

// How settings differ: of each of some, the words for what not all of them have.
export function playgroundDifferences(all) {
  const keys = Object.keys(SETTINGS).filter((key) => all.some((one) => one[key] !== all[0][key]));
  const said = (key, value) => {
    const name = { ffn: "feed-forward", letters: "alphabet", examples: "examples to learn from" }[key] ?? key;
    if (value === 0)
      return { examples: "all examples", longer: "one length scored", clip: "no clipping" }[key] ?? `no ${name}`;
    if (typeof value === "boolean") return value ? name : `${key === "residual" ? "no" : "not"} ${name}`;
    return key === "task" ? value : `${name} ${value}`;
  };
  return all.map((one) => keys.map((key) => said(key, one[key])).join(", "));
}
