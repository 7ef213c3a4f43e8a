// What is asked of the models: in a worker, or on the page's own thread in slices. Messages come by a port.
//
//   {id, kind: "load", name, base64, simd}  the weights of a model; the answer: {id, done: {products}}
//   {id, kind: "ask", name, task, options}  a task of tasks.js; the answers: {id, step} for each step, {id, done}.
//                                           The name is null where the task needs no weights from a file
//   {kind: "stop", id}                      no further step of what was asked
//
// Where something is wrong: {id, error}, a sentence; with `memory: true` where there is no room for it.
import { readModel } from "./models.js";
import { TASKS } from "./tasks.js";
import { outOfMemory, prepare, tidy } from "./tensor.js";

const bytesOf = (base64) => {
  const text = atob(base64),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes.buffer;
};

// Answers what comes by a port: a worker's own, or one of a MessageChannel.
export function serve(port) {
  const models = new Map(),
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

  async function load({ name, base64, simd }) {
    const products = await prepare({ simd });
    if (!models.has(name)) models.set(name, readModel(bytesOf(base64)));
    return { products };
  }

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
      work.return?.();
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
        port.postMessage({ id: data.id, done: (await (data.kind === "load" ? load(data) : ask(data))) ?? null });
      } catch (error) {
        port.postMessage({ id: data.id, error: String(error?.message ?? error), memory: outOfMemory(error) });
      }
      asked.delete(data.id);
      stopped.delete(data.id);
    });
  };
}
