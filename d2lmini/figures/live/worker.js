// What is asked of the models: in a worker, or on the page's own thread in slices. Messages come by a port.
//
//   {id, kind: "load", name, base64, simd}  the weights of a model; the answer: {id, done: {products}}
//   {id, kind: "ask", name, task, options}  a task of tasks.js; the answers: {id, step} for each step, {id, done}.
//                                           The name is null where the task needs no weights from a file
//   {kind: "stop", id}                      no further step of what was asked
//   {id, kind: "begin", manifest}           makes room for a model that comes in pieces: model_pieces.js
//   {id, kind: "piece", name, index, bytes} one of them, an ArrayBuffer
//   {id, kind: "finish", name}              all are there: the model can be asked
//   {id, kind: "drop", name}                frees a model that came in pieces, or those of it that are there
//
// Where something is wrong: {id, error}, a sentence; with `memory: true` where there is no room for it.

import { Pieces } from "./model_pieces.js";
import { readModel } from "./models.js";
import { TASKS } from "./tasks.js";
import { outOfMemory, prepare, tidy } from "./tensor.js";

const bytesOf = (/** @type {string} */ base64) => {
  const text = atob(base64),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes.buffer;
};

// Answers what comes by a port: a worker's own, or one of a MessageChannel.
/** @param {MessagePort} port */
export function serve(port) {
  const models = /** @type {Map<string | null, any>} */ (new Map()),
    coming = /** @type {Map<string, Pieces>} */ (new Map()), // Pieces of models that are not whole
    asked = new Set(), // ids that are not done
    stopped = new Set(), // those of them that are to stop
    { port1, port2 } = new MessageChannel();
  let last = Promise.resolve();

  // The turn of the page, and of a "stop". By messages: timers in a row wait for 4 ms each.
  const others = () =>
    new Promise((resolve) => {
      port1.onmessage = resolve;
      port2.postMessage(null);
    });

  /** @param {{ name: string, base64: string, simd?: boolean }} message */
  async function load({ name, base64, simd }) {
    const products = await prepare({ simd });
    if (!models.has(name)) models.set(name, readModel(bytesOf(base64)));
    return { products };
  }

  /** @param {string} name */
  function piecesOf(name) {
    const pieces = coming.get(name);
    if (!pieces) throw new Error(`no pieces of ${name} are expected`);
    return pieces;
  }

  /** @param {{ manifest: import("./model_pieces.js").Manifest }} message */
  async function begin({ manifest }) {
    drop(manifest);
    coming.set(manifest.name, await Pieces.begin(manifest));
  }

  /** @param {{ name: string }} message */
  function finish({ name }) {
    models.set(name, piecesOf(name).finish());
    coming.delete(name);
  }

  /** @param {{ name: string }} message */
  function drop({ name }) {
    models.get(name)?.free?.();
    coming.get(name)?.free();
    for (const all of [models, coming]) all.delete(name);
  }

  /** @type {Record<string, (message: any) => any>} */
  const KINDS = { load, ask, begin, piece: ({ name, index, bytes }) => piecesOf(name).put(index, bytes), finish, drop };

  /** @param {{ id: number, name: string | null, task: string, options: any }} message */
  async function ask({ id, name, task, options }) {
    if (name === null) await prepare();
    else if (!models.has(name)) throw new Error(`the model ${name} is not loaded`);
    if (!Object.hasOwn(TASKS, task)) throw new Error(`there is no task ${task}`);
    const work = TASKS[task](models.get(name), options);
    try {
      for (;;) {
        if (stopped.has(id)) return null;
        const { value, done } = tidy(() => work.next());
        if (done) return value;
        port.postMessage({ id, step: value });
        await others();
      }
    } finally {
      work.return(null);
    }
  }

  port.onmessage = ({ data }) => {
    if (data.kind === "stop") {
      if (asked.has(data.id)) stopped.add(data.id);
      return;
    }
    asked.add(data.id);
    // one after the other: they share the memory
    last = last.then(async () => {
      try {
        port.postMessage({ id: data.id, done: (await KINDS[data.kind](data)) ?? null });
      } catch (/** @type {any} */ error) {
        port.postMessage({ id: data.id, error: String(error?.message ?? error), memory: outOfMemory(error) });
      }
      asked.delete(data.id);
      stopped.delete(data.id);
    });
  };
}
