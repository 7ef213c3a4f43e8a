// Writing with the real model: a prompt, the text token by token, and what may come next at any of its places.
import { add, button, slider, tick } from "../base/index.js";
import { LIVE, newestQuestion } from "../page/host.js";
import { announcer } from "../page/model_box.js";
import { tokenBars } from "../page/next_bars.js";
import { REAL_MODEL } from "./load.js";
import { offNames } from "./look.js";
import { tokenBox, tokenName } from "./text.js";

const REAL_PROMPT = "Why is the sky blue? Answer in one sentence.",
  REAL_TOP = 8, // next tokens that are shown
  REAL_LONGEST = 40_000, // characters: no text of 2,048 tokens that people write is longer
  UNSEEN = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)";

// `lost(error)` hears that the worker has gone, and says so. `lookInto` makes the part that looks inside.
export function realModelWrite(parent, { lost, lookInto }) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
    question = newestQuestion(parent),
    now = { chat: true, temperature: 0, top_k: 0, top_p: 1, seed: 1, count: 100 };
  let ids = [],
    tokens = [], // {name, special} of each
    given = 0, // so many of them are the prompt
    steps = [], // what is known at places: what comes next, how a head looks
    at = null, // the chosen place; null: the newest
    writing = false,
    timer = 0,
    speed = null, // {tokens, milliseconds} of what was written last
    whole = null, // {input, text}: the last answer with all heads on
    without = ""; // what was off when the text was written

  // The newest token, or the one before the token that ended the answer: after it the bars show why.
  const newest = () => ids.length - (ids.length > given && tokens.at(-1)?.special ? 2 : 1);
  const chosenAt = () => Math.max(0, Math.min(at ?? newest(), ids.length - 1));
  const typing = add(parent, "label", { style: "display: block; margin-bottom: 6px" });
  add(typing, "span", { style: "display: block" }, "prompt");
  const field = add(typing, "textarea", { rows: 3, dir: "auto", style: "width: 100%; resize: vertical" });
  field.value = REAL_PROMPT;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || writing) return;
    event.preventDefault();
    write(now.count, true);
  });
  const pressing = add(parent, "div", { class: "d2lmini-controls", style: "gap: 8px 12px; margin-bottom: 4px" });
  const press = button(pressing, "Write", () => (writing ? stop() : write(now.count, true)), {
    style: "width: 4.5rem",
  });
  button(pressing, "Go on", () => write(now.count));
  button(pressing, "One token", () => write(1), { "aria-label": "one token more" });
  tick(pressing, { label: "chat template", value: now.chat }, (value) => {
    now.chat = value;
  });
  const setting = (where, key, label, min, max, step, said) =>
    slider(where, { label, min, max, step, value: now[key], say: said }, (value) => {
      now[key] = value;
      if (!writing && ids.length) know();
    });
  setting(pressing, "temperature", "temperature", 0, 2, 0.05, (x) => (x ? x.toFixed(2) : "greedy"));
  const fold = add(parent, "details");
  add(fold, "summary", { style: "min-height: 24px" }, "top-k, top-p, seed, length");
  const settings = add(fold, "div", { class: "d2lmini-controls", style: "gap: 0 20px; margin-bottom: 6px" });
  setting(settings, "top_k", "top-k", 0, 100, 1, (k) => (k ? String(k) : "all"));
  setting(settings, "top_p", "top-p", 0.05, 1, 0.05, (p) => (p < 1 ? p.toFixed(2) : "all"));
  setting(settings, "seed", "seed", 1, 50, 1, String);
  setting(settings, "count", "length limit", 10, 400, 10, (n) => `${n} tokens`);

  const say = announcer(parent);
  const panels = add(parent, "div", { class: "d2lmini-panels" }),
    side = add(panels, "div");
  const box = tokenBox(side, { label: "the text", choose: point });
  const numbers = add(side, "div", { style: "min-height: 1.4em; font-variant-numeric: tabular-nums" });
  const compared = add(side, "p", { style: "margin: 4px 0", dir: "auto" });
  const right = add(panels, "figure"),
    bars = tokenBars(right, REAL_TOP, 104),
    caption = add(right, "figcaption", { style: "min-height: 2.8em" });
  const heard = add(parent, "p", { role: "status", "aria-live": "polite", style: `${UNSEEN}; margin: 0` });
  const look = lookInto(add(parent, "div"), {
    state: () => ({ ids, tokens, i: chosenAt() }),
    know,
    changed: othersOff,
    paint,
  });
  panels.style.display = "none";

  const input = () => (now.chat ? { messages: [{ role: "user", content: field.value }] } : { text: field.value });
  const filters = () => ({
    temperature: now.temperature,
    top_k: now.top_k || null,
    top_p: now.top_p < 1 ? now.top_p : null,
    min_p: null,
  });
  const written = () =>
    tokens
      .slice(given)
      .filter(({ special }) => !special)
      .map(({ name, text = name }) => text)
      .join("");

  // Asks, and tells what went wrong; null where it was stopped.
  async function asked(work) {
    try {
      return await question.asked(work);
    } catch (error) {
      halt();
      if (LIVE.has(REAL_MODEL)) say(realModelSentence(error.message));
      else lost(error);
      paint();
      return null;
    }
  }

  async function write(count, fresh = !ids.length) {
    const wrong = fresh && realModelUnread(field.value);
    if (wrong) return say(wrong);
    say("");
    question.stop();
    at = null;
    writing = true;
    speed = null;
    paint();
    const done = await asked(async (ask) => {
      if (fresh) {
        const read = await ask(REAL_MODEL, "tokenise", input());
        if (!read) return null;
        ids = read.ids;
        tokens = read.pieces.map((name, i) => ({ name, special: read.special[i] }));
        given = ids.length;
        steps = [];
        paint();
      }
      without = offNames(look.off(), ", ");
      const options = { ...asking(), count, draws: ids.length - given, heads: look.heads() };
      return ask(REAL_MODEL, "real_write", options, take);
    });
    if (!done) {
      if (fresh && !steps.length) clear(); // it was not even read
      return;
    }
    halt();
    const off = look.off().length;
    if (!off && fresh) whole = { input: JSON.stringify(input()), text: written() };
    const ends = {
      stop: "The model ended its answer. “Go on” lets it write what would come next.",
      count: count > 1 ? `It stopped at the limit of ${count} tokens. “Go on” writes more.` : "",
      context: "The context is full.",
    };
    say(ends[done.why] ?? "");
    heard.textContent = `Written: ${written()}`;
    paint();
    look.moved();
  }

  const asking = () => ({ tokens: ids.slice(), filters: filters(), seed: now.seed, top: REAL_TOP, off: look.off() });

  function take(step) {
    if (step.reading) {
      say(`Reading the prompt: ${step.reading.done} of ${step.reading.total} tokens.`);
      return;
    }
    if (step.written) {
      ids[step.at] = step.token;
      const before = steps[step.at - 1]?.next; // of a stop token, and within a character, the text is empty
      const name = step.text || before?.pieces[before.ids.indexOf(step.token)] || (step.next ? "" : "<|end|>");
      tokens[step.at] = { name, text: step.text, special: step.next === null };
      speed ??= { tokens: 0, began: performance.now() };
      speed.tokens++;
      speed.milliseconds = performance.now() - speed.began;
    } else say("");
    steps[step.at] = step;
    timer ||= setTimeout(paint, calm ? 1000 : 60);
  }

  function clear() {
    ids = [];
    tokens = [];
    given = 0;
    paint();
  }

  function halt() {
    question.stop();
    writing = false;
  }

  function stop() {
    halt();
    say(`Stopped after ${ids.length - given} tokens.`);
    paint();
    look.moved();
  }

  // What comes next at the chosen place, where that is not known.
  async function know() {
    if (writing || !ids.length) return;
    const i = chosenAt(),
      options = { ...asking(), tokens: ids.slice(0, i + 1), count: 0, heads: [] };
    await asked(async (ask) => {
      await ask(REAL_MODEL, "real_write", options, (step) => {
        if (!step.reading) steps[step.at] = { ...steps[step.at], ...step, looks: steps[step.at]?.looks ?? [] };
      });
      paint();
      return look.ask(ask);
    });
    paint();
  }

  function point(i) {
    if (writing) stop();
    at = i;
    paint();
    know();
  }

  // Another token after the chosen place, and on from there.
  function goOn(id, name) {
    const i = chosenAt();
    halt();
    ids = [...ids.slice(0, i + 1), id];
    tokens = [...tokens.slice(0, i + 1), { name, special: false }];
    steps = steps.slice(0, i + 1);
    given = Math.min(given, i + 1);
    write(now.count);
    say(`“${tokenName(name)}” after token ${i + 1}.`);
  }

  function othersOff() {
    steps = [];
    if (!writing) know();
    paint();
  }

  function paint() {
    clearTimeout(timer);
    timer = 0;
    if (!parent.isConnected) return;
    press.textContent = writing ? "Stop" : "Write";
    panels.style.display = ids.length ? "" : "none";
    const i = chosenAt(),
      step = steps[i],
      next = step?.next;
    box({ tokens, given, chosen: i, shade: look.shade(step), follow: writing });
    numbers.textContent =
      `${given} tokens in the prompt, ${ids.length - given} written` +
      (speed && speed.tokens > 1
        ? `, ${((1000 * (speed.tokens - 1)) / speed.milliseconds).toFixed(0)} per second`
        : "") +
      without;
    const named = next?.ids.map((id, j) => ({
      id,
      name: tokenName(next.pieces[j]),
      own: next.p[j],
      after: next.drawn[j],
    }));
    bars(named ?? null, {
      next: ids[i + 1],
      choose: (id) => goOn(id, next.pieces[next.ids.indexOf(id)]),
    });
    const name = tokens[i] ? tokenName(tokens[i].name) : "";
    caption.textContent = next
      ? `After “${name}”, token ${i + 1}. Press a bar: the text goes on with that token, and what follows is dropped.`
      : `After “${name}”, token ${i + 1}: …`;
    const same = look.off().length && whole?.input === JSON.stringify(input());
    compared.textContent = same ? `With all heads and blocks on: ${whole.text}` : "";
  }

  return { focus: () => field.focus(), stop: halt, off: () => look.off() };
}

// What an error says, as a sentence.
export const realModelSentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`.replace(/([^.])$/, "$1.");

// What is wrong with a text before the model is asked, in a sentence, or "".
export function realModelUnread(text) {
  if (!text.trim()) return "The text is empty: type some words first.";
  const length = text.length.toLocaleString("en");
  return text.length > REAL_LONGEST ? `The text has ${length} characters, too many for the model: shorten it.` : "";
}
