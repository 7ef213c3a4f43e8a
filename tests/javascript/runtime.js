// The models' runtime as functions of plain values, for cases/ whose MODULE is this file. Weights come by a seed, as
// cases/_weights.py draws them. Whatever a function makes is freed again: else the next one says so.
import { activationOf, softmaxRow } from "../../d2lmini/figures/live/activations.js";
import { BERTForPretraining } from "../../d2lmini/figures/live/bert.js";
import { beamSearch } from "../../d2lmini/figures/live/decoding.js";
import { drawn, randomNumbers } from "../../d2lmini/figures/live/filters.js";
import { GPT } from "../../d2lmini/figures/live/gpt.js";
import { ImageGPT } from "../../d2lmini/figures/live/image_gpt.js";
import { Embedding, LayerNorm, Linear, RMSNorm } from "../../d2lmini/figures/live/layers.js";
import { Learner } from "../../d2lmini/figures/live/learner.js";
import { bestTokens, crossEntropy } from "../../d2lmini/figures/live/losses.js";
import { MultiHeadAttention } from "../../d2lmini/figures/live/multi_head.js";
import { clipGradients, OPTIMIZERS, squaredNorm } from "../../d2lmini/figures/live/optimizers.js";
import { watch } from "../../d2lmini/figures/live/plain_tasks.js";
import { alibiSlopes, RotaryEmbedding, sinusoidal } from "../../d2lmini/figures/live/position.js";
import { memoryUsed, prepare, Tensor, tidy } from "../../d2lmini/figures/live/tensor.js";
import { tinyWeights } from "../../d2lmini/figures/live/tiny.js";
import { makeTokenizer } from "../../d2lmini/figures/live/tokenizers.js";
import { PositionWiseFFN } from "../../d2lmini/figures/live/transformer.js";
import { Transformer } from "../../d2lmini/figures/live/transformer_seq2seq.js";
import { placesOf } from "../../d2lmini/figures/live/translate.js";
import { attentionRollout, ViT } from "../../d2lmini/figures/live/vit.js";
import { readWeights } from "../../d2lmini/figures/live/weights.js";

export { corpusBleu } from "../../d2lmini/figures/live/bleu.js";
export { filtered, ranked } from "../../d2lmini/figures/live/filters.js";
export { crc32, half } from "../../d2lmini/figures/live/weights.js";
export { alibiSlopes };

export const ways = { simd: () => prepare(), plain: () => prepare({ simd: false }) };

const numbers = ({ data }) => Array.from(data);

// Does some work with memory, all of which is given back.
function clean(work) {
  const before = memoryUsed(),
    result = tidy(work);
  if (memoryUsed() !== before) throw new Error(`${memoryUsed() - before} bytes are left behind`);
  return result;
}

// Weights of shapes {name: shape}, as `drawn_weights` of cases/_weights.py.
function weightsOf(shapes, seed) {
  const random = randomNumbers(seed);
  const made = Object.entries(shapes).map(([name, shape]) => {
    const [near, far] = shape.length > 1 ? [0, shape.at(-1) ** -0.5] : [name.endsWith("bias") ? 0 : 1, 0.3];
    const tensor = new Tensor(...shape);
    for (let i = 0; i < tensor.length; i++) tensor.data[i] = near + far * Math.sqrt(3) * (2 * random() - 1);
    return [name, tensor];
  });
  return new Map(made);
}

// ---- models
const MODELS = { BERTForPretraining, GPT, ImageGPT, Transformer, ViT };

function whole(model, { tokens, source, options, target }, seen) {
  if (!source) return model.forward(tokens, { ...options, seen });
  const state = model.start(source, tokens.length, { ...options, seen });
  const logits = model.decoder.forward(tokens, state, { ...target, seen });
  state.free();
  return logits;
}

// The same by a cache, so many tokens at a time.
function inParts(model, { tokens, source, options = {}, target, by }) {
  const inputs = model instanceof ImageGPT ? [model.config.num_levels, ...tokens.slice(0, -1)] : tokens;
  const state = source
    ? model.start(source, tokens.length, options)
    : model instanceof GPT
      ? model.empty_state(tokens.length, options.padding)
      : model.empty_caches();
  const next = (part) => {
    if (source) return model.decoder.forward(part, state, target);
    return model instanceof GPT ? model.extend(part, state, options) : model.step(part, state);
  };
  const found = [];
  for (let i = 0; i < inputs.length; i += by) found.push(...tidy(() => Array.from(next(inputs.slice(i, i + by)).data)));
  for (const one of Array.isArray(state) ? state : [state]) one.free();
  return found;
}

// What a model says to each of some questions: {logits, weights}, from row `first` on; `by`: and by a cache the same.
export function asked(kind, config, shapes, seed, questions) {
  return clean(() => {
    const all = weightsOf(shapes, seed),
      model = new MODELS[kind]((name) => all.get(name) ?? null, config);
    return questions.map(({ by = [], first = 0, ...question }) =>
      tidy(() => {
        const { seen, weights } = watch();
        const scores = whole(model, question, question.heads === undefined ? null : seen),
          V = scores.shape[1],
          logits = Array.from(scores.data).slice(first * V);
        for (const number of by)
          inParts(model, { ...question, by: number })
            .slice(first * V)
            .forEach((score, i) => {
              if (!(Math.abs(score - logits[i]) < 1e-4))
                throw new Error(`by ${number}: ${score}, expected ${logits[i]}`);
            });
        const looks = weights.map(({ shape: [H, T, S], data }) =>
          Array.from({ length: H }, (_, h) => Array.from(data.subarray((h * T + first) * S, (h + 1) * T * S))),
        );
        return question.heads === "rollout"
          ? { logits, rollout: Array.from(attentionRollout(weights)) }
          : { logits, looks };
      }),
    );
  });
}

// The sequences that beam search finds for each of some sources, the best first.
export function searched(config, shapes, seed, questions) {
  return clean(() => {
    const all = weightsOf(shapes, seed),
      model = new Transformer((name) => all.get(name) ?? null, config);
    const step = (token, state) => tidy(() => Float32Array.from(model.decoder.forward([token], state).data));
    const copy = (state) => state.copy(),
      free = (state) => state.free({ memory: false });
    return questions.map(({ source, options }) => {
      const root = model.start(source, options.max_len + 1),
        search = beamSearch({ step, copy, free }, root, options);
      for (;;) {
        const { value, done } = search.next();
        if (!done) continue;
        for (const { cross_attention } of root.caches) cross_attention.free();
        return value.slice(0, options.beam_size);
      }
    });
  });
}

// Scores (T, V) of a model in a file, base64.
export function read(base64, tokens) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return clean(() => {
    const { metadata, weights, free } = readWeights(bytes.buffer),
      scores = numbers(new MODELS[metadata.model](weights, metadata.config).forward(tokens));
    free();
    return scores;
  });
}

// ---- layers
const LAYERS = {
  Linear: (weights) => new Linear(weights),
  LayerNorm: (weights) => new LayerNorm(weights),
  RMSNorm: (weights) => new RMSNorm(weights),
  PositionWiseFFN: (weights, { activation }) => new PositionWiseFFN(weights, activation),
  MultiHeadAttention: (weights, { num_heads }) => new MultiHeadAttention(weights, num_heads),
};

// What a layer makes of X (T, h), and its gradients where the loss is the sum of the products with dY.
export function layer(kind, shapes, seed, { T, X, dY, ...options }) {
  return clean(() => {
    const all = weightsOf(shapes, seed),
      one = LAYERS[kind]((name) => all.get(name) ?? null, options),
      tape = [];
    for (const weight of all.values()) weight.gradient = Tensor.zeros(...weight.shape);
    const { rotary_size, alibi, ...others } = options,
      more = { ...others, tape };
    if (rotary_size) more.rotary = new RotaryEmbedding(rotary_size);
    if (alibi) more.slopes = alibiSlopes(options.num_heads);
    const Y = one.forward(Tensor.from(X, T, X.length / T), kind === "MultiHeadAttention" ? more : tape),
      dX = one.backward(Tensor.from(dY, T, dY.length / T), tape);
    if (tape.length) throw new Error(`${tape.length} things are left on the tape`);
    const gradients = Object.fromEntries(Array.from(all, ([name, { gradient }]) => [name, numbers(gradient)]));
    return { Y: numbers(Y), dX: numbers(dX), gradients };
  });
}

export const embedded = (weight, shape, tokens, factor) =>
  clean(() => numbers(new Embedding(() => Tensor.from(weight, ...shape)).forward(tokens, factor)));

export const sines = (positions, h) => clean(() => numbers(sinusoidal(positions, h)));

// An activation of numbers, and its slopes at them.
export const activated = (name, X) =>
  clean(() => {
    const f = activationOf(name),
      x = Tensor.from(X, X.length),
      ones = Tensor.from(
        X.map(() => 1),
        X.length,
      );
    return [numbers(f(x)), numbers(f.backward(ones, x))];
  });

export const softmaxOf = (row, first, end) => softmaxRow(Float32Array.from(row), first, end);

// ---- learning
// The loss of scores, their gradient, and the best tokens.
export const loss = (scores, V, targets) =>
  clean(() => {
    const tensor = Tensor.from(scores, scores.length / V, V),
      best = bestTokens(tensor);
    return { best, ...crossEntropy(tensor, targets), gradient: numbers(tensor) };
  });

// Weights of shapes after some steps, each with its own gradients.
export const optimized = (name, options, { weights, shapes, gradients, rate, clip }) =>
  tidy(() => {
    const tensors = weights.map((values, i) => Tensor.from(values, ...shapes[i])),
      optimizer = OPTIMIZERS[name](tensors, options);
    for (const step of gradients) {
      tensors.forEach((tensor, i) => {
        tensor.gradient = Tensor.from(step[i], ...shapes[i]);
      });
      const norm = Math.sqrt(tensors.reduce((sum, tensor) => sum + squaredNorm(tensor), 0));
      if (clip) clipGradients(tensors, norm, clip);
      optimizer.step(rate);
    }
    for (const tensor of optimizer.state.flat()) tensor.free();
    return tensors.map(numbers);
  });

// What is learned of a batch by a `TinyTransformer`: its loss; of the gradient of each weight the norm, and the product
// with random numbers; then the losses of some steps.
export function learned(model, seed, batch, optimizer, steps) {
  return clean(() => {
    const learner = new Learner({ model, optimizer }),
      shapes = Object.fromEntries(tinyWeights(model));
    learner.write(Object.fromEntries(Array.from(weightsOf(shapes, seed), ([name, { data }]) => [name, data])));
    const { loss: first } = learner.gradients(batch),
      random = randomNumbers(seed + 1);
    const gradients = learner.all.map((weight) => [
      Math.sqrt(squaredNorm(weight)),
      weight.gradient.data.reduce((sum, x) => sum + x * (2 * random() - 1), 0),
    ]);
    const losses = Array.from({ length: steps }, () => learner.step(batch).loss);
    learner.free();
    return { loss: first, gradients, losses };
  });
}

// ---- texts and draws
// What the methods of a tokenizer give, {name: inputs}, for each input; of an error what it says up to the first colon.
export function tokens(said, methods) {
  const tokenizer = makeTokenizer(said);
  const told = (name, input) => {
    try {
      return tokenizer[name](input);
    } catch (error) {
      return error.message.split(":")[0];
    }
  };
  return Object.fromEntries(
    Object.entries(methods).map(([name, inputs]) => [name, inputs.map((input) => told(name, input))]),
  );
}

// Where tokens stand, and "in order" where they stay there.
export const places = (...given) => placesOf(...given) ?? (given[0] === "none" ? null : "in order");

// So many draws by a seed.
export function draws(seed, probabilities, number) {
  const random = randomNumbers(seed);
  return Array.from({ length: number }, () => drawn(probabilities, random));
}
