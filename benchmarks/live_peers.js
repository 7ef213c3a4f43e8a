// The page of `benchmarks/live_peers.py`: a button for each contestant, which loads it and lets it write.
// Ours goes the way of the book's figures: LIVE.load, then LIVE.ask. The peer is in a worker, too.
const { d2lminiLive: LIVE, SETUP } = globalThis;

const CONTESTANTS = {
  ours: {
    load: () => LIVE.load(SETUP.weights),
    write: (options, told) => LIVE.ask(SETUP.weights, "greedy", options, told).done,
  },
};

for (const [name, model] of Object.entries(SETUP.peers)) {
  let worker = null;
  const ask = (message, told) =>
    new Promise((resolve, reject) => {
      worker.onerror = (event) => reject(new Error(event.message));
      worker.onmessage = ({ data }) => {
        if (data.error) reject(new Error(data.error));
        else if (data.done) resolve();
        else told(data.token);
      };
      worker.postMessage(message);
    });
  CONTESTANTS[name] = {
    load() {
      worker = new Worker("peer.js");
      return ask({ model, backend: SETUP.backend, past: SETUP.past });
    },
    write: (options, told) => ask(options, told),
  };
}

// Lets one write. Returns its tokens, and when each of them came.
async function write(name, count = SETUP.count) {
  const tokens = [],
    times = [];
  await CONTESTANTS[name].write({ tokens: SETUP.prompt, count }, (token) => {
    tokens.push(token);
    times.push(performance.now());
  });
  return { tokens, times };
}

for (const name of Object.keys(CONTESTANTS)) {
  const button = document.createElement("button");
  button.textContent = name;
  button.addEventListener("click", ({ timeStamp }) => {
    globalThis.found = CONTESTANTS[name].load().then(async () => {
      const { times } = await write(name, 1);
      return times[0] - timeStamp;
    });
  });
  document.body.append(button);
}

globalThis.write = write; // live_peers.py calls it
