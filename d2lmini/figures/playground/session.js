// What a reader has set in the playground, and the runs that came of it.
import { playgroundFit, playgroundShown } from "./fit.js";
import { PlaygroundRun } from "./run.js";

const GOES_ON = ["optimizer", "rate", "warmup", "decay", "clip", "batch"], // what may change in a run
  OLD_RUNS = 5;

export class PlaygroundSession {
  /** @param {import("./run.js").Settings} settings */
  constructor(settings) {
    this.settings = settings;
    this.own = ""; // the reader's text
    this.texts = /** @type {Record<string, string>} */ ({}); // the others, as far as they have come
    this.fit = /** @type {import("./fit.js").Fit | null} */ (null); // what the settings come to, if they fit
    this.shown = /** @type {import("./fit.js").Shown[]} */ ([]); // held-out examples, with what the model says
    this.earlier = /** @type {PlaygroundRun[]} */ ([]);
    this.run = new PlaygroundRun(settings, "");
  }

  // What is learned where it is a text; null: it is not there yet.
  get text() {
    const { task, text } = this.settings;
    if (task !== "text") return "";
    return text === "own" ? this.own : (this.texts[text] ?? null);
  }

  // Of all that only another run can have.
  get key() {
    const { task, text } = this.settings,
      parts = Object.entries(this.settings).filter(([key]) => !GOES_ON.includes(key));
    return JSON.stringify([parts, task === "text" && text === "own" ? this.own : null]);
  }

  // Other settings, with which the run goes on if it can.
  /** @param {import("./run.js").Settings} settings */
  put(settings) {
    this.settings = settings;
    if (this.run.key === this.key) this.run.change(settings);
  }

  // What does not fit, in a sentence; else `fit` has the task.
  check() {
    const { fit, wrong } = playgroundFit(this.settings, this.text);
    this.fit = fit;
    return wrong;
  }

  // A run of its own; one that came to something stays behind.
  begin() {
    const { run, settings } = this,
      runs = run.step >= 10 ? [...this.earlier, run].slice(-OLD_RUNS) : this.earlier;
    this.earlier = runs.filter((one) => one.settings.task === settings.task); // another task has another loss
    this.run = new PlaygroundRun(settings, this.key);
  }

  // The examples that are shown.
  dress() {
    this.shown = this.fit ? playgroundShown(this.fit.task, this.settings) : [];
  }
}
