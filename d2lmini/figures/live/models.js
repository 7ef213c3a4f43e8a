// A model by the name of its class, from the file that `python -m d2lmini export` writes.
import { BERTForPretraining } from "./bert.js";
import { GPT } from "./gpt.js";
import { ImageGPT } from "./image_gpt.js";
import { outOfMemory } from "./tensor.js";
import { Transformer } from "./transformer_seq2seq.js";
import { ViT } from "./vit.js";
import { readWeights } from "./weights.js";

/** @type {Record<string, new (weights: import("./layers.js").Weights, config: any) => any>} */
const MODELS = { BERTForPretraining, GPT, ImageGPT, Transformer, ViT };

// Returns {model, config, tokenizer, extra}: the last two as the file's metadata has them. Throws an Error where the
// file is damaged, or of a model that the runtime does not know.
/** @param {ArrayBuffer} buffer */
export function readModel(buffer) {
  const { metadata, weights, free } = readWeights(buffer);
  const Model = Object.hasOwn(MODELS, metadata.model) && MODELS[metadata.model];
  if (!Model) throw new Error(`these weights are of a ${metadata.model}, which this page does not know`);
  let model;
  try {
    model = new Model(weights, metadata.config);
  } catch (error) {
    free();
    if (outOfMemory(error)) throw error;
    throw new Error(`these weights do not fit a ${metadata.model} (${/** @type {Error} */ (error).message})`);
  }
  return { model, config: model.config, tokenizer: metadata.tokenizer ?? null, extra: metadata.extra ?? {} };
}
