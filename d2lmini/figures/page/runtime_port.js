// The way to the runtime: in a worker, or where a page has none on its own thread, in slices.

/**
 * @typedef {() => { serve: (port: MessagePort) => void }} Runtime  a worker is made of its text
 * @typedef {{ message: object, step: (told: any) => void, resolve: (done: any) => void,
 *   reject: (error: Error) => void }} Sent
 */

/** @param {() => void} lost  hears that a worker has gone, with all models */
export function runtimePort(lost) {
  const waiting = /** @type {Map<number, Sent>} */ (new Map()); // what was asked and is not done
  let port = /** @type {Worker | MessagePort | null} */ (null),
    lastId = 0;

  /** @param {Runtime} runtime */
  function start(runtime) {
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
        else onThisThread(runtime); // a page may forbid workers, which only shows once one is to begin
      };
    } catch {
      onThisThread(runtime);
    }
  }

  /** @param {Runtime} runtime */
  function onThisThread(runtime) {
    const { port1, port2 } = new MessageChannel();
    runtime().serve(port1);
    listen(port2);
    for (const [id, { message }] of waiting) port2.postMessage({ ...message, id });
  }

  /** @param {Worker | MessagePort} to */
  function listen(to, heard = () => {}) {
    port = to;
    to.onmessage = (/** @type {MessageEvent} */ { data }) => {
      heard();
      const sent = waiting.get(data.id);
      if (!sent) return;
      if ("step" in data) return sent.step(data.step);
      waiting.delete(data.id);
      if (data.memory) noRoom(sent);
      else if ("error" in data) sent.reject(new Error(data.error));
      else sent.resolve(data.done);
    };
  }

  /** @param {string} why */
  function died(why) {
    const left = [...waiting.values()];
    port = null;
    waiting.clear();
    lost();
    for (const { reject } of left) reject(new Error(why || "the worker has stopped"));
  }

  // A worker's memory never becomes less, so the worker goes: what else runs on this page may need the room.
  /** @param {Sent} sent */
  function noRoom({ reject }) {
    const error = Object.assign(new Error("this machine has too little memory for it"), { memory: true });
    reject(error);
    if (!(port && "terminate" in port)) return;
    port.terminate();
    died(error.message);
  }

  return {
    start,
    started: () => port !== null,
    // Asks it, once it is started: {done, stop}. `moved`: buffers that are gone then.
    send(
      /** @type {object} */ message,
      step = (/** @type {any} */ _) => {},
      moved = /** @type {ArrayBuffer[]} */ ([]),
    ) {
      const id = ++lastId;
      const done = new Promise((resolve, reject) => waiting.set(id, { message, step, resolve, reject }));
      /** @type {Worker} */ (port).postMessage({ ...message, id }, moved);
      return { done, stop: () => port?.postMessage({ kind: "stop", id }) };
    },
  };
}
