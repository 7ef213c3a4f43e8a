// A small Transformer that learns in the page: its settings, its run, and what is seen of it.
import { add, button, choice, keep, place } from "../base/index.js";
import { pythonOf } from "../live/playground_python.js";
import { announcer } from "../page/model_box.js";
import { playgroundAddress, playgroundCopies } from "./address.js";
import { playgroundControls } from "./controls.js";
import { playgroundCurve, playgroundGradients } from "./curve.js";
import { playgroundExamples } from "./examples.js";
import { weakMachine } from "./fit.js";
import { playgroundExample } from "./heads.js";
import { PlaygroundLearning } from "./learning.js";
import { PlaygroundSession } from "./session.js";

/** @typedef {import("./run.js").Settings} Settings */

const PLAYED = new WeakSet(); // figures that have taken over the address
const RUN_PACES = { slow: "two steps a second", screen: "as the screen shows it", full: "as fast as it can" };

function render({ model, el }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
    frame = calm ? 1000 : 100; // milliseconds between two pictures at least
  const weak = weakMachine(),
    settings = { ...model.get("settings") };
  if (weak) Object.assign(settings, { width: 16, blocks: 1, heads: Math.min(settings.heads, 2) });
  const session = new PlaygroundSession(settings);
  let timer = 0,
    showControls = (/** @type {Settings} */ _) => {};

  // ---- what stands there
  const challengeLine = add(el, "p", {
    style: "scroll-margin-top: 8rem; margin: 0 0 8px; min-height: 1px",
    "data-part": "challenge",
  });
  const folds = add(el, "div");
  const remark = add(el, "p", { role: "status", style: "margin: 0; min-height: 1.4em", "data-part": "remark" });
  const pressing = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 10px; margin-bottom: 4px" });
  const everLearning = () => (learning.turn ? learning.pause() : learning.learn(Number.POSITIVE_INFINITY));
  const training = button(pressing, "Train", everLearning, { style: "width: 4.5rem" });
  button(pressing, "One step", () => learning.learn(1));
  button(pressing, "Ten steps", () => learning.learn(10));
  button(pressing, "Start over", () => learning.startOver(), {
    "aria-label": "Start over: the model anew, with the same seed",
  });
  const numbers = add(el, "div", {
    style: "font-variant-numeric: tabular-nums; min-height: 2.8em",
    "data-part": "numbers",
  });
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const curve = playgroundCurve(panels, () => {
    session.earlier = [];
    paint();
  });
  const bars = playgroundGradients(panels);
  choice(pressing, { label: "pace", options: RUN_PACES, value: "screen" }, (value) => {
    learning.pace = value;
    learning.asked?.stop();
  });
  const heads = playgroundExample(add(el, "div"), () => learning.look());
  const answers = playgroundExamples(add(el, "div"));
  const say = announcer(el);
  const address = model.get("address") ? playgroundAddress(el, opened) : null;
  const copies = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 10px; margin: 6px 0" });
  /** @type {Record<string, () => string>} */
  const made = { "Copy as Python": () => pythonOf(session.settings, session.run.step) };
  if (address) made["Copy link"] = () => address.link(session.settings);
  playgroundCopies(copies, add(el, "div"), made, say);

  const learning = new PlaygroundLearning(
    session,
    {
      there: () => el.isConnected,
      tokens: heads.tokens,
      dressed: () => heads.begin(session.fit, session.shown[0]?.tokens),
      paint,
      soon,
      tell,
      say,
    },
    frame,
  );

  // ---- settings
  // All settings at once, from an address.
  /** @param {Settings} settings */
  function take(settings) {
    folds.replaceChildren();
    showControls = playgroundControls(folds, settings, {
      change: (key, value) => put({ ...session.settings, [key]: value }),
      typed,
      own: session.own,
    });
    put({ ...settings });
  }

  /** @param {Settings} settings */
  function put(settings) {
    session.put(settings);
    changed();
  }

  /** @param {string} text */
  function typed(text) {
    session.own = text;
    changed();
  }

  function changed() {
    const { settings } = session;
    keep(model, "settings", settings);
    address?.write(settings);
    showControls(settings);
    const wrong = session.check();
    tell(wrong);
    place(training, { "aria-disabled": Boolean(wrong) });
    learning.changed(Boolean(wrong));
  }

  /** @param {import("./address.js").Opened} opened */
  function opened({ settings, said, challenge }) {
    take(settings);
    if (session.run.step) learning.startOver(); // a link is a run of its own
    tell([said, remark.textContent].filter(Boolean).join(" "));
    const about = challenge ? document.getElementById(`challenge-${challenge}`) : null;
    challengeLine.textContent = about?.dataset.challenge ?? "";
    challengeLine.scrollIntoView({ block: "start" });
  }

  /** @param {string} sentence */
  function tell(sentence) {
    remark.textContent = sentence;
  }

  // ---- what is seen
  function soon() {
    timer ||= setTimeout(paint, frame);
  }

  function paint() {
    const { run, earlier, settings, shown } = session;
    clearTimeout(timer);
    timer = 0;
    training.textContent = learning.turn ? "Pause" : "Train";
    numbers.textContent = run.told();
    curve({ run, earlier });
    bars(run);
    heads.paint(run.look);
    answers({ answers: shown, text: settings.task === "text" ? run.sample : null, settings });
  }

  // A tab that nobody sees rests.
  document.addEventListener("visibilitychange", function heard() {
    if (!el.isConnected) document.removeEventListener("visibilitychange", heard);
    else if (document.hidden) learning.rest();
    else learning.goOn();
  });

  // ---- begin
  take(settings);
  if (weak) tell(`${weak}: the model begins with one block of width 16.`);
  if (address && !PLAYED.has(model)) queueMicrotask(address.read);
  PLAYED.add(model);
}

export default { render };
