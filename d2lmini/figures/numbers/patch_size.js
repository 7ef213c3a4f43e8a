// What it costs a vision Transformer to cut a picture into patches of a size.

/** @typedef {"embedding" | "projections" | "network" | "attention"} Part */

export const PARTS = /** @type {Part[]} */ (["embedding", "projections", "network", "attention"]);

/**
 * Tokens, parameters, and operations of each part for one image: the same as PatchSize.costs; and all `operations`.
 * @param {{ high: number, wide: number, num_hiddens: number, mlp_num_hiddens: number, num_blks: number }} model
 * @param {number} size
 */
export function costs({ high, wide, num_hiddens: h, mlp_num_hiddens, num_blks }, size) {
  const patches = (high * wide) / size ** 2,
    T = patches + 1;
  const counts = {
    tokens: T,
    embedding_parameters: size ** 2 * h + h,
    position_parameters: T * h,
    embedding: 2 * patches * size ** 2 * h,
    projections: num_blks * 8 * T * h ** 2,
    network: num_blks * 4 * T * h * mlp_num_hiddens,
    attention: num_blks * 4 * T ** 2 * h,
  };
  return { ...counts, operations: PARTS.reduce((sum, part) => sum + counts[part], 0) };
}
