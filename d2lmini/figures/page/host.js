// The page's side of the models: one copy of each for all figures, loaded when a reader asks, at work in a worker.
import { add, button, place, scroller } from "../base/index.js";

function makeLive() {
  const texts = new Map(), // base64 of weights that have come
    fed = new Set(), // models that come in pieces
    loads = new Map(), // promises of models that are there, or on their way
    waiting = new Map(); // what was asked and is not done: id to its message and handlers
  const root = document.documentElement.dataset.content_root; // of the book; a notebook has none
  let runtime = null,
    port = null,
    lastId = 0;

  // A file of the book as a script: from file:// a page may fetch nothing.
  function script(name) {
    return new Promise((resolve, reject) => {
      if (root === undefined) {
        reject(new Error(`${name} is not in this page`));
        return;
      }
      const node = document.createElement("script");
      node.src = `${root}_static/live/${name}.js`;
      node.onload = resolve;
      node.onerror = () => reject(new Error(`${name}.js could not be loaded; perhaps the network is down`));
      document.head.append(node);
    });
  }

  async function delivered(name) {
    if (!texts.has(name)) await script(name);
    return texts.get(name);
  }

  function start() {
    if (port) return;
    try {
      const source = `(${runtime})().serve(self);`;
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const worker = new Worker(url);
      let alive = false;
      listen(worker, () => {
        if (!alive) URL.revokeObjectURL(url); // not before: the worker has read it now
        alive = true;
      });
      worker.onerror = (event) => {
        event.preventDefault();
        URL.revokeObjectURL(url);
        if (port !== worker) return;
        worker.terminate();
        if (alive) died(event.message);
        else onThisThread(); // a page may forbid workers, which only shows once one is to begin
      };
    } catch {
      onThisThread();
    }
  }

  // Where there is no worker: in slices.
  function onThisThread() {
    const channel = new MessageChannel();
    runtime().serve(channel.port1);
    listen(channel.port2);
    for (const [id, { message }] of waiting) port.postMessage({ ...message, id });
  }

  function died(why) {
    const left = [...waiting.values()];
    port = null;
    for (const all of [waiting, loads]) all.clear();
    for (const { reject } of left) reject(new Error(why || "the worker has stopped"));
  }

  function listen(to, heard = () => {}) {
    port = to;
    port.onmessage = ({ data }) => {
      heard();
      const handlers = waiting.get(data.id);
      if (!handlers) return;
      if ("step" in data) handlers.step(data.step);
      else {
        waiting.delete(data.id);
        if (data.memory) noRoom(handlers);
        else if ("error" in data) handlers.reject(new Error(data.error));
        else handlers.resolve(data.done);
      }
    };
  }

  // A worker's memory never becomes less, so the worker goes: what else runs on this page may need the room.
  function noRoom({ reject }) {
    const error = Object.assign(new Error("this machine has too little memory for it"), { memory: true });
    reject(error);
    if (!port.terminate) return;
    port.terminate();
    died(error.message);
  }

  function send(message, step = () => {}, moved = []) {
    const id = ++lastId;
    const done = new Promise((resolve, reject) => waiting.set(id, { message, step, resolve, reject }));
    port.postMessage({ ...message, id }, moved);
    return { done, stop: () => port?.postMessage({ kind: "stop", id }) };
  }

  async function bring(name, simd) {
    if (fed.has(name)) throw new Error("the model has to be loaded again");
    if (navigator.deviceMemory < 1) throw new Error("this machine has too little memory for it");
    if (!runtime) await script("runtime");
    const base64 = await delivered(name);
    start();
    const { products } = await send({ kind: "load", name, base64, simd }).done;
    if (root !== undefined) texts.delete(name); // a notebook could not bring it again
    return products;
  }

  return {
    // Called by the files that `script` brings, or by those in a notebook's own output.
    runtime: (factory) => {
      runtime ??= factory;
    },
    deliver: (name, base64) => {
      texts.set(name, base64);
    },
    // Whether a model is there, or on its way.
    has: (name) => loads.has(name),
    // Loads a model once; a promise of "simd" or "plain". What went wrong may be tried again. `simd: false`: all models
    // multiply in plain JavaScript, until another one is loaded.
    load(name, { simd = true } = {}) {
      if (!loads.has(name)) {
        const coming = bring(name, simd);
        loads.set(name, coming);
        coming.catch(() => {
          if (loads.get(name) === coming) loads.delete(name);
          if (root !== undefined) texts.delete(name);
        });
      }
      return loads.get(name);
    },
    // A text that can be learned, by its name.
    text: (name) => delivered(`text_${name}`),
    // What is to be known of a model that comes in pieces, before any of them is there: see models/weights/pieces.py.
    manifest: async (name) => JSON.parse(await delivered(name)),
    // Makes room for such a model, which can be asked after `done()`. A piece's buffer is gone once it was given.
    async feed(manifest) {
      const { name } = manifest,
        missing = new Set(manifest.pieces.keys()),
        tell = (kind, more, moved) => send({ kind, name, ...more }, undefined, moved).done;
      await Promise.all([this.drop(name), this.open()]);
      fed.add(name);
      await tell("begin", { manifest });
      return {
        missing: () => [...missing],
        piece: (index, bytes) => tell("piece", { index, bytes }, [bytes]).then(() => missing.delete(index)),
        done: () => tell("finish").then(() => loads.set(name, Promise.resolve("simd")).has(name)),
      };
    },
    // Frees what `feed` has made, whole or not.
    async drop(name) {
      loads.delete(name);
      if (port && fed.has(name)) await send({ kind: "drop", name }).done;
    },
    // Starts the runtime for tasks that need no weights, which are asked with the name null.
    async open() {
      if (!runtime) await script("runtime");
      start();
    },
    // Asks a model, which is loaded again where its worker has died: {done, stop}. `step` is called with each step of the
    // task; stopped before its end, it is done with null.
    ask(name, task, options, step) {
      let sent = null,
        stopped = false;
      const done = (name === null ? this.open() : this.load(name)).then(() => {
        if (stopped) return null;
        sent = send({ kind: "ask", name, task, options }, step);
        return sent.done;
      });
      const stop = () => {
        stopped = true;
        sent?.stop();
      };
      return { done, stop };
    },
  };
}

if (!globalThis.d2lminiLive) globalThis.d2lminiLive = makeLive();
export const LIVE = globalThis.d2lminiLive;

// A place in a figure for questions to models, of which the newest counts. `asked(work)` calls `work(ask)`, which asks by
// `ask(name, task, options, step)`, a promise of what the task returns, as often as it likes; the question before is
// stopped. A promise of what `work` returns: null where a newer question came, `stop` was called, or `node` has left the
// page; neither steps nor errors of such a question are heard of.
export function newestQuestion(node) {
  let jobs = null; // of the newest question; null: none is open
  const stop = () => {
    for (const job of jobs ?? []) job.stop();
    jobs = null;
  };
  async function asked(work) {
    stop();
    const mine = [];
    jobs = mine;
    const counts = () => jobs === mine && node.isConnected;
    const ask = (name, task, options, step = () => {}) => {
      const job = LIVE.ask(name, task, options, (told) => {
        if (counts()) step(told);
        else job.stop();
      });
      if (jobs === mine) mine.push(job);
      else job.stop();
      return job.done;
    };
    try {
      const done = await work(ask);
      return counts() ? done : null;
    } catch (error) {
      if (!counts()) return null;
      for (const job of mine) job.stop(); // others of the same question
      if (error.memory) node.dispatchEvent(new CustomEvent(NO_ROOM, { bubbles: true }));
      throw error;
    } finally {
      if (jobs === mine) jobs = null;
    }
  }
  return { asked, stop, busy: () => jobs !== null };
}
const NO_ROOM = "d2lmini-no-room";

// A region that is read out when it changes.
export function announcer(parent) {
  const node = add(parent, "p", { class: "d2lmini-said", role: "status", "aria-live": "polite" });
  return (text) => {
    node.textContent = text;
  };
}

// From which run a figure's weights are.
export function runLine(parent, weights) {
  const of = weights.data ? ` Data: ${weights.data}.` : "";
  add(parent, "p", { class: "d2lmini-run", style: "margin: 0; opacity: 0.85" }, `Weights: run ${weights.run}.${of}`);
}

// The part of a figure that needs a model. Before it is there: a button with its size, and what was recorded; when it
// is, `show(body)` draws. Where a task finds no room in memory, the button and what was recorded come back. `weights` is
// {name, megabytes, run}, `recorded` {caption, header, rows}, or null where all is told already; `called`: what the
// button loads.
export function withModel(parent, { weights, recorded = null, called = "the model" }, show) {
  const body = add(parent, "div", { class: "d2lmini-live" });
  const draw = () => {
    body.replaceChildren();
    show(body);
  };
  body.addEventListener(NO_ROOM, (event) => {
    event.stopPropagation();
    offer("The model has stopped: this machine has too little memory for it.");
  });
  if (LIVE.has(weights.name))
    offer().comes(); // another figure has asked for it
  else offer();

  function offer(why = "") {
    body.replaceChildren();
    const line = add(body, "p", { class: "d2lmini-load" });
    const node = button(line, `Load ${called} (${weights.megabytes.toFixed(1)} MB)`, go);
    const say = announcer(body);
    const below = recorded ? " What was recorded is below." : "";
    if (recorded) recordedTable(body, recorded);
    if (why) say(`${why}${below}`);
    return { comes };
    async function go() {
      if (node.getAttribute("aria-disabled") === "true") return;
      if (await comes()) (body.querySelector("textarea, input, select, button") ?? body).focus();
    }
    // Whether the model has come, and is drawn.
    async function comes() {
      place(node, { "aria-disabled": true });
      say("Loading …");
      try {
        await LIVE.load(weights.name);
      } catch (error) {
        place(node, { "aria-disabled": false });
        say(`The model cannot run here: ${error.message}.${below}`);
        return false;
      }
      draw();
      return true;
    }
  }
}

function recordedTable(parent, { caption, header, rows }) {
  const box = add(scroller(parent), "table", { class: "d2lmini-words" });
  add(box, "caption", {}, caption);
  const top = add(add(box, "thead"), "tr");
  for (const text of header) add(top, "th", { scope: "col" }, text);
  const lines = add(box, "tbody");
  for (const [first, ...rest] of rows) {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, first);
    for (const text of rest) add(line, "td", {}, text);
  }
}
