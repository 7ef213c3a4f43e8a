// What a vision Transformer sees in a picture: classes, and where its class token looks.
import { softmaxRow } from "./activations.js";
import { watch } from "./plain_tasks.js";
import { attentionRollout } from "./vit.js";

// `pixels` are numbers from 0 to 1; `kept` and `places` are those of `ViT`. Returns `probabilities` of the classes;
// `whole`, those of the picture with all patches in place; of the class token's attention to itself and to the patches
// kept `attention[block][head]`, and `rollout` through all blocks.
/**
 * @param {{ model: import("./vit.js").ViT }} loaded
 * @param {{ pixels: number[], kept?: number[] | null, places?: (number | null)[] | null }} options
 */
export function* classifyTask({ model }, { pixels, kept = null, places = null }) {
  const classes = (/** @type {object} */ options) => softmaxRow(model.forward(pixels, options).data.slice());
  const { seen, weights } = watch();
  const probabilities = classes({ kept, places, seen });
  return {
    probabilities,
    whole: kept || places ? classes({}) : probabilities,
    attention: weights.map(({ shape: [H, T], data }) =>
      Array.from({ length: H }, (_, head) => data.slice(head * T * T, head * T * T + T)),
    ),
    rollout: attentionRollout(weights).slice(0, weights[0].shape[1]),
  };
}
