// Writing with the real model: a prompt, the text token by token, and what may come next at any of its places.
import { add, button, slider, tick } from "../base/index.js";
import { filtersOf, inputOf } from "../numbers/real_model.js";
import { LIVE, newestQuestion } from "../page/host.js";
import { announcer } from "../page/model_box.js";
import { tokenBars } from "../page/next_bars.js";
import { REAL_MODEL } from "./load.js";
import { endText, offNames, realModelSentence, realModelUnread, tokenName } from "./text.js";
import { tokenBox } from "./token_box.js";
import { writtenText } from "./written.js";

const REAL_PROMPT = "Why is the sky blue? Answer in one sentence.",
  REAL_TOP = 8, // next tokens that are shown
  UNSEEN = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)";

// `lost(error)` hears that the worker has gone, and says so. `lookInto` makes the part that looks inside.
export function realModelWrite(parent, { lost, lookInto }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
    question = newestQuestion(parent),
    text = writtenText(),
    now = { chat: true, temperature: 0, top_k: 0, top_p: 1, seed: 1, count: 100 };
  let writing = false,
    timer = 0,
    without = ""; // what was off when the text was written

  const begin = () => write(now.count, true);
  const field = promptField(parent, { busy: () => writing, begin });
  const press = controls(parent, now, { press: () => (writing ? stop() : begin()), write, changed: know });
  const say = announcer(parent);
  const show = textPanels(parent, point);
  const heard = add(parent, "p", { role: "status", "aria-live": "polite", style: `${UNSEEN}; margin: 0` });
  const look = lookInto(add(parent, "div"), {
    state: () => ({ ids: text.ids, tokens: text.tokens, i: text.chosen() }),
    know,
    changed: othersOff,
    paint,
  });

  const input = () => inputOf(now, field.value);
  const asking = (length = text.ids.length) => {
    const tokens = text.ids.slice(0, length);
    return { tokens, filters: filtersOf(now), seed: now.seed, top: REAL_TOP, off: look.off() };
  };

  // Asks, and tells what went wrong; null where it was stopped.
  async function asked(work) {
    try {
      return await question.asked(work);
    } catch (/** @type {any} */ error) {
      halt();
      if (LIVE.has(REAL_MODEL)) say(realModelSentence(error.message));
      else lost(error);
      paint();
      return null;
    }
  }

  async function write(count, fresh = !text.ids.length) {
    const wrong = fresh && realModelUnread(field.value);
    if (wrong) return say(wrong);
    say("");
    question.stop();
    text.at = null;
    writing = true;
    text.start();
    paint();
    const done = await asked(async (ask) => {
      if (fresh) {
        const read = await ask(REAL_MODEL, "tokenize", input());
        if (!read) return null;
        text.begin(read);
        paint();
      }
      without = offNames(look.off(), ", ");
      const options = { ...asking(), count, draws: text.ids.length - text.given, heads: look.heads() };
      return ask(REAL_MODEL, "real_write", options, take);
    });
    if (!done) {
      if (!fresh || text.steps.length) return;
      text.clear(); // it was not even read
      paint();
      return;
    }
    halt();
    if (!look.off().length && fresh) text.remember(input());
    say(endText(done.why, count));
    heard.textContent = `Written: ${text.answer()}`;
    paint();
    look.moved();
  }

  function take(step) {
    if (step.reading) {
      say(`Reading the prompt: ${step.reading.done} of ${step.reading.total} tokens.`);
      return;
    }
    text.take(step);
    if (!step.written) say("");
    timer ||= setTimeout(paint, calm ? 1000 : 60);
  }

  function halt() {
    question.stop();
    writing = false;
  }

  function stop() {
    halt();
    say(`Stopped after ${text.ids.length - text.given} tokens.`);
    paint();
    look.moved();
  }

  // What comes next at the chosen place, where that is not known.
  async function know() {
    if (writing || !text.ids.length) return;
    const options = { ...asking(text.chosen() + 1), count: 0, heads: [] };
    await asked(async (ask) => {
      await ask(REAL_MODEL, "real_write", options, (step) => {
        if (!step.reading) text.know(step);
      });
      paint();
      return look.ask(ask);
    });
    paint();
  }

  function point(i) {
    if (writing) stop();
    text.at = i;
    paint();
    know();
  }

  // Another token after the chosen place, and on from there.
  function goOn(id, name) {
    halt();
    const i = text.goOn(id, name);
    write(now.count);
    say(`“${tokenName(name)}” after token ${i + 1}.`);
  }

  function othersOff() {
    text.steps = [];
    if (!writing) know();
    paint();
  }

  function paint() {
    clearTimeout(timer);
    timer = 0;
    if (!parent.isConnected) return;
    press.textContent = writing ? "Stop" : "Write";
    show(text, {
      shade: look.shade(text.steps[text.chosen()]),
      follow: writing,
      more: text.perSecond() + without,
      other: look.off().length ? text.remembered(input()) : "",
      choose: goOn,
    });
  }

  return { focus: () => field.focus(), stop: halt, off: () => look.off() };
}

// A prompt; control and Enter begin with it, unless the model is busy.
function promptField(parent, { busy, begin }) {
  const typing = add(parent, "label", { style: "display: block; margin-bottom: 6px" });
  add(typing, "span", { style: "display: block" }, "prompt");
  const field = add(typing, "textarea", { rows: 3, dir: "auto", style: "width: 100%; resize: vertical" });
  field.value = REAL_PROMPT;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || busy()) return;
    event.preventDefault();
    begin();
  });
  return field;
}

// Buttons, of which the first is returned, the chat template and the temperature; the other settings are folded.
function controls(parent, now, { press, write, changed }) {
  const pressing = add(parent, "div", { class: "d2lmini-controls", style: "gap: 8px 12px; margin-bottom: 4px" });
  const first = button(pressing, "Write", press, { style: "width: 4.5rem" });
  button(pressing, "Go on", () => write(now.count));
  button(pressing, "One token", () => write(1), { "aria-label": "one token more" });
  tick(pressing, { label: "chat template", value: now.chat }, (value) => {
    now.chat = value;
  });
  const setting = (where, key, label, min, max, step, say) =>
    slider(where, { label, min, max, step, value: now[key], say }, (value) => {
      now[key] = value;
      changed();
    });
  setting(pressing, "temperature", "temperature", 0, 2, 0.05, (x) => (x ? x.toFixed(2) : "greedy"));
  const fold = add(parent, "details");
  add(fold, "summary", { style: "min-height: 24px" }, "top-k, top-p, seed, length");
  const box = add(fold, "div", { class: "d2lmini-controls", style: "gap: 0 20px; margin-bottom: 6px" });
  setting(box, "top_k", "top-k", 0, 100, 1, (k) => (k ? String(k) : "all"));
  setting(box, "top_p", "top-p", 0.05, 1, 0.05, (p) => (p < 1 ? p.toFixed(2) : "all"));
  setting(box, "seed", "seed", 1, 50, 1, String);
  setting(box, "count", "length limit", 10, 400, 10, (n) => `${n} tokens`);
  return first;
}

// The text, whose places `point(i)` chooses, and what may come next. Returns a function that shows a written text.
function textPanels(parent, point) {
  const panels = add(parent, "div", { class: "d2lmini-panels" }),
    side = add(panels, "div");
  const box = tokenBox(side, { label: "the text", choose: point });
  const numbers = add(side, "div", { style: "min-height: 1.4em; font-variant-numeric: tabular-nums" });
  const compared = add(side, "p", { style: "margin: 4px 0", dir: "auto" });
  const right = add(panels, "figure"),
    bars = tokenBars(right, REAL_TOP, 104),
    caption = add(right, "figcaption", { style: "min-height: 2.8em" });
  panels.style.display = "none";

  return (/** @type {ReturnType<typeof writtenText>} */ text, { shade, follow, more, other, choose }) => {
    const { ids, tokens, given, steps } = text,
      i = text.chosen(),
      next = steps[i]?.next;
    panels.style.display = ids.length ? "" : "none";
    box({ tokens, given, chosen: i, shade, follow });
    numbers.textContent = `${given} tokens in the prompt, ${ids.length - given} written${more}`;
    const named = next?.ids.map((id, j) => ({
      id,
      name: tokenName(next.pieces[j]),
      own: next.p[j],
      after: next.drawn[j],
    }));
    bars(named ?? null, { next: ids[i + 1], choose: (id) => choose(id, next?.pieces[next.ids.indexOf(id)]) });
    const place = `After “${tokens[i] ? tokenName(tokens[i].name) : ""}”, token ${i + 1}`;
    caption.textContent = next
      ? `${place}. Press a bar: the text goes on with that token, and what follows is dropped.`
      : `${place}: …`;
    compared.textContent = other;
  };
}
