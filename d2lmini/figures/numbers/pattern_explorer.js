// The pattern of a family of models: one grid of its attentions, and what a token sees in it.

/** @typedef {{ name: string, rows: number[], columns: number[], data: string }} Block */

/**
 * The grid over N tokens: true where a pair is seen, false where it is masked, null where there is none; the tokens
 * that have a row or a column; the pairs that each attention computes.
 * @param {Block[]} blocks
 * @param {number} N
 */
export function joined(blocks, N) {
  const grid = Array.from({ length: N }, () => Array.from({ length: N }, () => /** @type {boolean | null} */ (null)));
  for (const { rows, columns, data } of blocks)
    rows.forEach((t, i) =>
      columns.forEach((s, j) => {
        grid[t][s] = data[i * columns.length + j] === "1";
      }),
    );
  const axis = (/** @type {"rows" | "columns"} */ side) =>
    [...new Set(blocks.flatMap((block) => block[side]))].sort((a, b) => a - b);
  const counts = blocks.map(({ data }) => data.split("1").length - 1);
  return { grid, rows: axis("rows"), columns: axis("columns"), counts };
}
