// Going up and down among spans in lines, and their shades.
import assert from "node:assert/strict";
import { test } from "node:test";
import { spanBeside, spanShade } from "../../d2lmini/figures/page/spans.js";

// "the old / ship / sails on": where each span begins
const NODES = [
  [0, 0],
  [0, 40],
  [20, 0],
  [40, 0],
  [40, 45],
].map(([offsetTop, offsetLeft]) => ({ offsetTop, offsetLeft }));

test("the nearest span of the next line, or the same where there is no line", () => {
  assert.deepEqual(
    NODES.map((_, i) => spanBeside(NODES, i, 1)),
    [2, 2, 3, 3, 4],
  );
  assert.deepEqual(
    NODES.map((_, i) => spanBeside(NODES, i, -1)),
    [0, 1, 0, 2, 2],
  );
});

test("a small share is seen, a tiny one is not", () => {
  assert.equal(spanShade(0.004), "");
  assert.equal(spanShade(0.01), "color-mix(in srgb, var(--blue) 5%, transparent)");
  assert.equal(spanShade(1, "--orange"), "color-mix(in srgb, var(--orange) 85%, transparent)");
});
