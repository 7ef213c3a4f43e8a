// The part of a figure that needs a model: the button that loads it, what was recorded, and what is read out meanwhile.
import { add, button, columns, place, scroller } from "../base/index.js";
import { LIVE, NO_ROOM } from "./host.js";

// A region that is read out when it changes.
export function announcer(parent) {
  const node = add(parent, "p", { class: "d2lmini-said", role: "status", "aria-live": "polite" });
  return (/** @type {string} */ text) => {
    node.textContent = text;
  };
}

// From which run a figure's weights are.
export function runLine(parent, weights) {
  const of = weights.data ? ` Data: ${weights.data}.` : "";
  add(parent, "p", { class: "d2lmini-run", style: "margin: 0; opacity: 0.85" }, `Weights: run ${weights.run}.${of}`);
}

/** @typedef {{ caption: string, header: string[], rows: string[][] }} Recorded */

/**
 * Before the model is there: a button with its size, and what was recorded, if that is not told already; when it is,
 * `show(body)` draws. Where a task finds no room in memory, the button and what was recorded come back. `called`: what
 * the button loads.
 * @param {Element} parent
 * @param {{ weights: { name: string, megabytes: number }, recorded?: Recorded | null, called?: string }} settings
 * @param {(body: HTMLElement) => void} show
 */
export function withModel(parent, { weights, recorded = null, called = "the model" }, show) {
  const body = add(parent, "div", { class: "d2lmini-live" });
  const below = recorded ? " What was recorded is below." : "";
  body.addEventListener(NO_ROOM, (event) => {
    event.stopPropagation();
    offer("The model has stopped: this machine has too little memory for it.");
  });
  const comes = offer();
  if (LIVE.has(weights.name)) comes(); // another figure has asked for it

  function offer(why = "") {
    body.replaceChildren();
    const line = add(body, "p", { class: "d2lmini-load" });
    const node = button(line, `Load ${called} (${weights.megabytes.toFixed(1)} MB)`, go);
    const say = announcer(body);
    if (recorded) recordedTable(body, recorded);
    if (why) say(`${why}${below}`);
    return comes;
    async function go() {
      if (node.getAttribute("aria-disabled") === "true" || !(await comes())) return;
      const first = body.querySelector("textarea, input, select, button");
      /** @type {HTMLElement} */ (first ?? body).focus();
    }
    // Whether the model has come, and is drawn.
    async function comes() {
      place(node, { "aria-disabled": true });
      say("Loading …");
      try {
        await LIVE.load(weights.name);
      } catch (/** @type {any} */ error) {
        place(node, { "aria-disabled": false });
        say(`The model cannot run here: ${error.message}.${below}`);
        return false;
      }
      body.replaceChildren();
      show(body);
      return true;
    }
  }
}

/**
 * @param {Element} parent
 * @param {Recorded} recorded
 */
function recordedTable(parent, { caption, header, rows }) {
  const box = add(scroller(parent), "table", { class: "d2lmini-words" });
  add(box, "caption", {}, caption);
  const lines = columns(box, header);
  for (const [first, ...rest] of rows) {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, first);
    for (const text of rest) add(line, "td", {}, text);
  }
}
