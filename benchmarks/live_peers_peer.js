// Writes greedily with onnxruntime-web, on one thread; keys and values of what was read are outputs and inputs.
let session = null,
  past = null,
  ort = null; // which the backend makes global

async function load({ model, backend, past: shapes }) {
  const coming = fetch(model).then((answer) => answer.arrayBuffer()); // while the backend comes
  self.importScripts(backend);
  ort = self.ort;
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL("./", self.location).href;
  const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
  session = await ort.InferenceSession.create(new Uint8Array(await coming), options);
  past = shapes;
}

async function write({ tokens, count }) {
  let read = tokens,
    states = Object.entries(past).map(([name, shape]) => [name, new ort.Tensor("float32", new Float32Array(0), shape)]);
  for (let i = 0; i < count; i++) {
    const inputs = new ort.Tensor("int64", BigInt64Array.from(read, BigInt), [1, read.length]);
    const found = await session.run({ tokens: inputs, ...Object.fromEntries(states) });
    const scores = found.logits.data;
    read = [scores.indexOf(Math.max(...scores))];
    states = states.map(([name]) => [name, found[name.replace("past", "present")]]);
    postMessage({ token: read[0] });
  }
}

self.onmessage = async ({ data }) => {
  try {
    await (data.model ? load(data) : write(data));
    postMessage({ done: true });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};
