// A small Transformer that learns in the page: its settings, its run, and what is seen of it.
import { add, button, choice, keep, place } from "../base/index.js";
import { pythonOf } from "../live/playground_python.js";
import { trainOptions } from "../live/playground_settings.js";
import { LIVE } from "../page/host.js";
import { announcer } from "../page/model_box.js";
import { playgroundAddress, playgroundCopies } from "./address.js";
import { playgroundControls } from "./controls.js";
import { playgroundCurve, playgroundGradients } from "./curve.js";
import { playgroundExamples } from "./examples.js";
import { playgroundFit, playgroundGuess, playgroundShown, weakMachine } from "./fit.js";
import { playgroundExample } from "./heads.js";
import { PlaygroundRun } from "./run.js";

const GOES_ON = ["optimiser", "rate", "warmup", "decay", "clip", "batch"], // what may change in a run
  OLD_RUNS = 5,
  SAID_EVERY = 10_000, // milliseconds
  SAMPLE_EVERY = 3000;
const PLAYED = new WeakSet(); // figures that have taken over the address
const RUN_PACES = { slow: "two steps a second", screen: "as the screen shows it", full: "as fast as it can" };
function render({ model, el }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
    frame = calm ? 1000 : 100; // milliseconds between two pictures at least
  const learner = `playground-${Math.random().toString(36).slice(2)}`,
    texts = {};
  let settings = { ...model.get("settings") },
    own = "", // the reader's text
    fit = null, // what the settings come to, if they fit
    shown = [], // held-out examples, with what the model says
    earlier = [],
    run = null,
    turn = null, // of the learning that goes on: {}
    asked = null,
    left = 0,
    pace = "screen",
    timer = 0,
    said = 0, // when it was last announced
    sampled = Number.NEGATIVE_INFINITY,
    looked = 0;

  // ---- what stands there
  const challengeLine = add(el, "p", {
    style: "scroll-margin-top: 8rem; margin: 0 0 8px; min-height: 1px",
    "data-part": "challenge",
  });
  const folds = add(el, "div");
  let showControls = null;
  const remark = add(el, "p", { role: "status", style: "margin: 0; min-height: 1.4em", "data-part": "remark" });
  const pressing = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 10px; margin-bottom: 4px" });
  const training = button(pressing, "Train", () => (turn ? pause() : learn(Number.POSITIVE_INFINITY)), {
    style: "width: 4.5rem",
  });
  button(pressing, "One step", () => learn(1));
  button(pressing, "Ten steps", () => learn(10));
  button(pressing, "Start over", startOver, { "aria-label": "Start over: the model anew, with the same seed" });
  const numbers = add(el, "div", {
    style: "font-variant-numeric: tabular-nums; min-height: 2.8em",
    "data-part": "numbers",
  });
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const curve = playgroundCurve(panels, () => {
    earlier = [];
    paint();
  });
  const bars = playgroundGradients(panels);
  choice(pressing, { label: "pace", options: RUN_PACES, value: pace }, (value) => {
    pace = value;
    asked?.stop();
  });
  const heads = playgroundExample(add(el, "div"), lookAt);
  const answers = playgroundExamples(add(el, "div"));
  const say = announcer(el);
  const address = model.get("address")
    ? playgroundAddress(el, (opened) => {
        take(opened.settings);
        if (run.step) startOver(); // a link is a run of its own
        tell([opened.said, remark.textContent].filter(Boolean).join(" "));
        follow(opened.challenge);
        challengeLine.scrollIntoView({ block: "start" });
      })
    : null;
  const copies = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 10px; margin: 6px 0" });
  const made = { "Copy as Python": () => pythonOf(settings, run.step) };
  if (address) made["Copy link"] = () => address.link(settings);
  playgroundCopies(copies, add(el, "div"), made, say);

  // ---- settings
  const textOf = () => (settings.text === "own" ? own : (texts[settings.text] ?? null));
  const keyOf = () => {
    const parts = Object.entries(settings).filter(([key]) => !GOES_ON.includes(key));
    return JSON.stringify([parts, settings.task === "text" && settings.text === "own" ? own : null]);
  };

  // What does not fit, in a sentence; else `fit` has the task.
  function check() {
    const found = playgroundFit(settings, settings.task === "text" ? textOf() : "");
    fit = found.fit;
    return found.wrong;
  }

  function tell(sentence) {
    remark.textContent = sentence;
  }

  const change = (key, value) => put({ ...settings, [key]: value });

  // All settings at once, from an address.
  function take(others) {
    folds.replaceChildren();
    showControls = playgroundControls(folds, others, { change, typed, own });
    put({ ...others });
  }

  function put(others) {
    settings = others;
    if (run?.key === keyOf()) run.change(settings);
    changed();
  }

  function typed(text) {
    own = text;
    changed();
  }

  function changed() {
    keep(model, "settings", settings);
    address?.write(settings);
    showControls(settings);
    const wrong = check();
    tell(wrong);
    place(training, { "aria-disabled": Boolean(wrong) });
    if (run?.key !== keyOf()) begin();
    if (wrong && turn) pause();
    else asked?.stop(); // what was changed holds from now on
    paint();
  }

  // A run of its own; one that came to something stays behind.
  function begin() {
    if (run?.step >= 10) earlier = [...earlier, run].slice(-OLD_RUNS);
    earlier = earlier.filter((one) => one.settings.task === settings.task); // another task has another loss
    say("");
    run = new PlaygroundRun(settings, keyOf());
    sampled = Number.NEGATIVE_INFINITY;
    dress();
  }

  // The examples that are shown.
  function dress() {
    shown = fit ? playgroundShown(fit.task, settings) : [];
    heads.begin(fit, shown[0]?.tokens);
  }

  function follow(name) {
    const about = name && document.getElementById(`challenge-${name}`);
    challengeLine.textContent = about ? about.dataset.challenge : "";
  }

  // ---- learning
  function startOver() {
    const going = turn;
    if (going) pause();
    begin();
    paint();
    if (going) learn(Number.POSITIVE_INFINITY);
  }

  function pause(why = null) {
    turn = null;
    left = 0;
    asked?.stop();
    if (why) say(why);
    else
      Promise.resolve(asked?.done) // its last steps are on the way
        .catch(() => {})
        .then(() => turn || say(`Paused at step ${run.step}.`));
    paint();
  }

  // So many steps as fit between two pictures; for a rest, a second or a tick.
  function chunk() {
    if (pace === "slow") return 1;
    const time = pace === "full" ? 4 * frame : frame / 2;
    return Math.max(1, Math.min(500, Math.floor(time / (run.pace || 10))));
  }

  function optionsOf(steps, text) {
    const tokens = heads.tokens();
    const now = performance.now(),
      due = fit.task.everywhere && now - sampled > SAMPLE_EVERY;
    if (due) sampled = now;
    const start = Math.max(0, fit.task.tokens.indexOf("\n"));
    return {
      learner,
      ...trainOptions(settings, text),
      steps: due ? 1 : steps,
      reset: !run.made,
      look: tokens && { tokens },
      sample: due ? { tokens: [start], length: 160, every: 1 } : null,
    };
  }

  async function learn(steps) {
    if (training.getAttribute("aria-disabled") === "true") return;
    if (turn) pause();
    const mine = {};
    turn = mine;
    left = steps;
    if (run.exploded) tell("");
    if (left > 10) announce(`Learning from step ${run.step}.`);
    paint();
    try {
      await asked?.done.catch(() => {});
      await LIVE.open();
      while (turn === mine && left > 0) {
        const begun = performance.now();
        if (!fit) await bring();
        if (turn !== mine) return;
        await ask(mine, Math.min(left, chunk()));
        if (!el.isConnected) return leave();
        if (turn !== mine) return;
        if (performance.now() - looked > 1000 || left <= 0) await guess();
        if (left > 10 && performance.now() - said > SAID_EVERY) announce(`Step ${run.step}: ${run.scores()}.`);
        const wait = pace === "full" ? 0 : pace === "slow" ? Math.max(500, frame) : frame;
        if (left > 0)
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, wait - (performance.now() - begun))));
        if (!el.isConnected) return leave();
      }
      if (turn === mine) pause(`Step ${run.step}: ${run.scores()}.`);
    } catch (error) {
      if (turn !== mine) return;
      begin();
      tell(`The model has stopped: ${error.message}. Train begins anew.`);
      pause("The model has stopped.");
    }
  }

  // The text that is learned, now that it is needed.
  async function bring() {
    const { text } = settings;
    texts[text] = await LIVE.text(text);
    const wrong = check();
    if (wrong) {
      tell(wrong);
      pause(wrong);
    } else dress();
  }

  // Some steps, as the worker tells of them.
  async function ask(mine, steps) {
    const now = run,
      before = run.step,
      { task } = fit;
    let forgot = false;
    asked = LIVE.ask(null, "train", optionsOf(steps, settings.task === "text" ? textOf() : ""), (step) => {
      // a worker that has died in between knows nothing of this run
      forgot ||= step.step - step.losses.length !== now.step;
      if (forgot || !el.isConnected) asked.stop();
      if (forgot) return;
      now.take({ ...step, sample: step.sample && task.decode(step.sample) });
      soon();
    });
    const done = await asked.done;
    if (forgot) throw new Error("what it had learned is lost");
    left -= now.step - before;
    if (done?.exploded && turn === mine) {
      now.goBack(done.step, done.exploded);
      tell(`It exploded: ${done.exploded.why}. The model is back at step ${done.step}; try a smaller rate.`);
      pause(`It exploded at step ${done.exploded.step} and is back at step ${done.step}.`);
      lookAt();
      await guess();
    }
  }

  // What the model says to the shown examples.
  async function guess() {
    looked = performance.now();
    if (!run.made) return;
    await Promise.all(shown.map((one) => playgroundGuess(one, learner, fit.task)));
    soon();
  }

  // The heads on what the reader wrote, when nothing is learned just now.
  async function lookAt() {
    const tokens = heads.tokens(),
      now = run;
    if (!tokens || turn || !run.made) return;
    now.look = await LIVE.ask(null, "look", { learner, tokens }).done.catch(() => null);
    paint();
  }

  function leave() {
    turn = null;
    asked?.stop();
    LIVE.ask(null, "forget", { learner }).done.catch(() => {});
  }

  // A tab that nobody sees rests.
  document.addEventListener("visibilitychange", function heard() {
    if (!el.isConnected) document.removeEventListener("visibilitychange", heard);
    else if (document.hidden && turn) {
      const rest = left;
      pause();
      left = rest;
    } else if (!document.hidden && left > 0 && !turn) learn(left);
  });

  // ---- what is seen
  function announce(text) {
    said = performance.now();
    say(text);
  }

  function soon() {
    timer ||= setTimeout(paint, frame);
  }

  function paint() {
    clearTimeout(timer);
    timer = 0;
    training.textContent = turn ? "Pause" : "Train";
    numbers.textContent = run.told();
    curve({ run, earlier });
    bars(run);
    heads.paint(run.look);
    answers({ answers: shown, text: settings.task === "text" ? run.sample : null, settings });
  }

  // ---- begin
  const weak = weakMachine();
  if (weak) Object.assign(settings, { width: 16, blocks: 1, heads: Math.min(settings.heads, 2) });
  take(settings);
  if (weak) tell(`${weak}: the model begins with one block of width 16.`);
  if (address && !PLAYED.has(model)) queueMicrotask(address.read);
  PLAYED.add(model);
}

export default { render };
