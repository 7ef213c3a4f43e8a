// The playground's learner at work: steps in slices that the screen can follow, what the model says meanwhile, and rest.
import { trainOptions } from "../live/playground_settings.js";
import { LIVE } from "../page/host.js";
import { playgroundGuess } from "./fit.js";

const SAID_EVERY = 10_000, // milliseconds
  SAMPLE_EVERY = 3000;

/**
 * What is seen: `there` says whether the figure is still in the page, `tokens` those that the heads are to look at;
 * `dressed` follows other examples.
 * @typedef {{ there: () => boolean, tokens: () => number[] | null, dressed: () => void, paint: () => void,
 *   soon: () => void, tell: (sentence: string) => void, say: (sentence: string) => void }} Page
 */

export class PlaygroundLearning {
  /** @param {import("./session.js").PlaygroundSession} session @param {Page} page @param {number} frame */
  constructor(session, page, frame) {
    this.session = session;
    this.page = page;
    this.frame = frame; // milliseconds between two pictures at least
    this.learner = `playground-${Math.random().toString(36).slice(2)}`;
    this.pace = "screen";
    this.barred = false; // the settings do not fit
    this.turn = /** @type {object | null} */ (null); // of the learning that goes on: {}
    this.asked = /** @type {{ done: Promise<any>, stop: () => void } | null} */ (null);
    this.left = 0;
    this.said = 0; // when it was last announced
    this.sampled = Number.NEGATIVE_INFINITY;
    this.looked = 0;
  }

  // Settings that were changed hold from now on.
  /** @param {boolean} barred */
  changed(barred) {
    const { session } = this;
    this.barred = barred;
    if (session.run.key !== session.key) this.begin();
    if (barred && this.turn) this.pause();
    else this.asked?.stop();
    this.page.paint();
  }

  begin() {
    this.session.begin();
    this.page.say("");
    this.sampled = Number.NEGATIVE_INFINITY;
    this.#dress();
  }

  #dress() {
    this.session.dress();
    this.page.dressed();
  }

  startOver() {
    const going = this.turn;
    if (going) this.pause();
    this.begin();
    this.page.paint();
    if (going) this.learn(Number.POSITIVE_INFINITY);
  }

  pause(why = "") {
    const { say } = this.page;
    this.turn = null;
    this.left = 0;
    this.asked?.stop();
    if (why) say(why);
    else
      Promise.resolve(this.asked?.done) // its last steps are on the way
        .catch(() => {})
        .then(() => this.turn || say(`Paused at step ${this.session.run.step}.`));
    this.page.paint();
  }

  // A pause after which `goOn` makes the steps that are left.
  rest() {
    if (!this.turn) return;
    const { left } = this;
    this.pause();
    this.left = left;
  }

  goOn() {
    if (this.left > 0 && !this.turn) this.learn(this.left);
  }

  /** @param {number} steps */
  async learn(steps) {
    const { session, page, frame } = this;
    if (this.barred) return;
    if (this.turn) this.pause();
    const mine = {};
    this.turn = mine;
    this.left = steps;
    if (session.run.exploded) page.tell("");
    if (this.left > 10) this.#announce(`Learning from step ${session.run.step}.`);
    page.paint();
    try {
      await this.asked?.done.catch(() => {});
      await LIVE.open();
      while (this.turn === mine && this.left > 0) {
        const begun = performance.now();
        if (!session.fit) await this.#bring();
        if (this.turn !== mine) return;
        await this.#ask(mine, Math.min(this.left, this.#chunk()));
        if (!page.there()) return this.#leave();
        if (this.turn !== mine) return;
        if (performance.now() - this.looked > 1000 || this.left <= 0) await this.#guess();
        if (this.left > 10 && performance.now() - this.said > SAID_EVERY) this.#announce(this.#scores());
        const wait = this.pace === "full" ? 0 : this.pace === "slow" ? Math.max(500, frame) : frame;
        if (this.left > 0)
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, wait - (performance.now() - begun))));
        if (!page.there()) return this.#leave();
      }
      if (this.turn === mine) this.pause(this.#scores());
    } catch (/** @type {any} */ error) {
      if (this.turn !== mine) return;
      this.begin();
      page.tell(`The model has stopped: ${error.message}. Train begins anew.`);
      this.pause("The model has stopped.");
    }
  }

  #scores() {
    const { run } = this.session;
    return `Step ${run.step}: ${run.scores()}.`;
  }

  /** @param {string} sentence */
  #announce(sentence) {
    this.said = performance.now();
    this.page.say(sentence);
  }

  // So many steps as fit between two pictures; for a rest, a second or a tick.
  #chunk() {
    if (this.pace === "slow") return 1;
    const time = this.pace === "full" ? 4 * this.frame : this.frame / 2;
    return Math.max(1, Math.min(500, Math.floor(time / (this.session.run.pace || 10))));
  }

  // The text that is learned, now that it is needed.
  async #bring() {
    const { session, page } = this,
      { text } = session.settings;
    session.texts[text] = await LIVE.text(text);
    const wrong = session.check();
    if (wrong) {
      page.tell(wrong);
      this.pause(wrong);
    } else this.#dress();
  }

  /** @param {number} steps @param {import("../live/playground_tasks.js").PlaygroundTask} task */
  #options(steps, task) {
    const { settings, text, run } = this.session,
      tokens = this.page.tokens(),
      now = performance.now(),
      due = task.everywhere && now - this.sampled > SAMPLE_EVERY;
    if (due) this.sampled = now;
    const start = Math.max(0, task.tokens.indexOf("\n"));
    return {
      learner: this.learner,
      ...trainOptions(settings, text ?? ""),
      steps: due ? 1 : steps,
      reset: !run.made,
      look: tokens && { tokens },
      sample: due ? { tokens: [start], length: 160, every: 1 } : null,
    };
  }

  // Some steps, as the worker tells of them.
  /** @param {object} mine @param {number} steps */
  async #ask(mine, steps) {
    const { session, page } = this,
      { run, fit } = session,
      before = run.step;
    if (!fit) return;
    let forgot = false;
    const asked = LIVE.ask(null, "train", this.#options(steps, fit.task), (/** @type {any} */ step) => {
      // a worker that has died in between knows nothing of this run
      forgot ||= step.step - step.losses.length !== run.step;
      if (forgot || !page.there()) asked.stop();
      if (forgot) return;
      run.take({ ...step, sample: step.sample && fit.task.decode(step.sample) });
      page.soon();
    });
    this.asked = asked;
    const done = await asked.done;
    if (forgot) throw new Error("what it had learned is lost");
    this.left -= run.step - before;
    if (done?.exploded && this.turn === mine) {
      run.goBack(done.step, done.exploded);
      page.tell(`It exploded: ${done.exploded.why}. The model is back at step ${done.step}; try a smaller rate.`);
      this.pause(`It exploded at step ${done.exploded.step} and is back at step ${done.step}.`);
      this.look();
      await this.#guess();
    }
  }

  // What the model says to the shown examples.
  async #guess() {
    const { shown, run, fit } = this.session;
    this.looked = performance.now();
    if (!run.made || !fit) return;
    await Promise.all(
      shown.map(async (one) => {
        const { probabilities } = await LIVE.ask(null, "look", { learner: this.learner, tokens: one.tokens }).done;
        one.guess = playgroundGuess(one, probabilities, fit.task);
      }),
    );
    this.page.soon();
  }

  // The heads on what the reader wrote, when nothing is learned just now.
  async look() {
    const tokens = this.page.tokens(),
      { run } = this.session;
    if (!tokens || this.turn || !run.made) return;
    run.look = await LIVE.ask(null, "look", { learner: this.learner, tokens }).done.catch(() => null);
    this.page.paint();
  }

  #leave() {
    this.turn = null;
    this.asked?.stop();
    LIVE.ask(null, "forget", { learner: this.learner }).done.catch(() => {});
  }
}
