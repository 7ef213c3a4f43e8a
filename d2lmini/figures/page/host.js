// The page's side of the models: one copy of each for all figures, loaded when a reader asks; and questions to them.
import { runtimePort } from "./runtime_port.js";

/** @typedef {import("./runtime_port.js").Runtime} Runtime */
/** @typedef {{ done: Promise<any>, stop: () => void }} Job */

function makeLive() {
  const texts = /** @type {Map<string, string>} */ (new Map()), // base64 of weights that have come
    fed = new Set(), // models that come in pieces
    loads = /** @type {Map<string, Promise<string>>} */ (new Map()), // models that are there, or on their way
    port = runtimePort(() => loads.clear());
  const root = document.documentElement.dataset.content_root; // of the book; a notebook has none
  let runtime = /** @type {Runtime | null} */ (null);

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
    return /** @type {string} */ (texts.get(name));
  }

  async function factory() {
    if (!runtime) await script("runtime");
    return /** @type {Runtime} */ (runtime);
  }

  async function bring(name, simd) {
    if (fed.has(name)) throw new Error("the model has to be loaded again");
    const { deviceMemory = 1 } = /** @type {Navigator & { deviceMemory?: number }} */ (navigator);
    if (deviceMemory < 1) throw new Error("this machine has too little memory for it");
    const source = await factory(),
      base64 = await delivered(name);
    port.start(source);
    const { products } = await port.send({ kind: "load", name, base64, simd }).done;
    if (root !== undefined) texts.delete(name); // a notebook could not bring it again
    return products;
  }

  return {
    // Called by the files that `script` brings, or by those in a notebook's own output.
    runtime: (/** @type {Runtime} */ made) => {
      runtime ??= made;
    },
    deliver: (name, base64) => {
      texts.set(name, base64);
    },
    // Whether a model is there, or on its way.
    has: (name) => loads.has(name),
    // Loads a model once; a promise of "simd" or "plain". What went wrong may be tried again. `simd: false`: all models
    // multiply in plain JavaScript, until another one is loaded.
    load(/** @type {string} */ name, { simd = true } = {}) {
      const there = loads.get(name);
      if (there) return there;
      const coming = bring(name, simd);
      loads.set(name, coming);
      coming.catch(() => {
        if (loads.get(name) === coming) loads.delete(name);
        if (root !== undefined) texts.delete(name);
      });
      return coming;
    },
    // A text that can be learned, by its name.
    text: (name) => delivered(`text_${name}`),
    // What is to be known of a model that comes in pieces, before any of them is there: see models/weights/model_pieces.py.
    manifest: async (name) => JSON.parse(await delivered(name)),
    // Makes room for such a model, which can be asked after `done()`. A piece's buffer is gone once it was given.
    async feed(manifest) {
      const { name } = manifest,
        missing = new Set(manifest.pieces.keys()),
        tell = (kind, more = {}, moved = /** @type {ArrayBuffer[]} */ ([])) =>
          port.send({ kind, name, ...more }, undefined, moved).done;
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
      if (port.started() && fed.has(name)) await port.send({ kind: "drop", name }).done;
    },
    // Starts the runtime for tasks that need no weights, which are asked with the name null.
    async open() {
      port.start(await factory());
    },
    /**
     * Asks a model, which is loaded again where its worker has died. `step` is called with each step of the task;
     * stopped before its end, it is done with null.
     * @param {string | null} name
     * @param {string} task
     * @param {object} options
     * @param {(told: any) => void} [step]
     * @returns {Job}
     */
    ask(name, task, options, step) {
      let sent = /** @type {Job | null} */ (null),
        stopped = false;
      const opened = /** @type {Promise<unknown>} */ (name === null ? this.open() : this.load(name));
      const done = opened.then(() => {
        if (stopped) return null;
        sent = port.send({ kind: "ask", name, task, options }, step);
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
export const LIVE = /** @type {ReturnType<typeof makeLive>} */ (globalThis.d2lminiLive);

export const NO_ROOM = "d2lmini-no-room"; // an event: a task has found no room in memory

/**
 * A place in a figure for questions to models, of which the newest counts. `asked(work)` calls `work(ask)`, which asks
 * by `ask(name, task, options, step)`, a promise of what the task returns, as often as it likes; the question before is
 * stopped. A promise of what `work` returns: null where a newer question came, `stop` was called, or `node` has left
 * the page; neither steps nor errors of such a question are heard of.
 * @param {Node} node
 */
export function newestQuestion(node) {
  let jobs = /** @type {Job[] | null} */ (null); // of the newest question; null: none is open
  const stop = () => {
    for (const job of jobs ?? []) job.stop();
    jobs = null;
  };
  async function asked(work) {
    stop();
    const mine = /** @type {Job[]} */ ([]);
    jobs = mine;
    const counts = () => jobs === mine && node.isConnected;
    const ask = (name, task, options, step = (/** @type {any} */ _) => {}) => {
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
    } catch (/** @type {any} */ error) {
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
