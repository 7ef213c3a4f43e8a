// The numbers of figures beside what the package gives: values.json, which values.py writes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const WITHIN = 1e-6; // of a number, and a tenth of that besides

// Fails where two values differ by more than `WITHIN`, relative to what is wanted.
function close(got, want, path) {
  if (typeof want === "number") {
    assert.equal(typeof got, "number", path);
    assert.ok(Math.abs(got - want) <= WITHIN * (Math.abs(want) + 0.1), `${path}: ${got}, expected ${want}`);
  } else if (want !== null && typeof want === "object") {
    const plain = ArrayBuffer.isView(got) ? Array.from(/** @type {Float32Array} */ (got)) : got;
    assert.deepEqual(Object.keys(plain ?? {}), Object.keys(want), path);
    for (const key of Object.keys(want)) close(plain[key], want[key], `${path}.${key}`);
  } else assert.equal(got, want, path);
}

const values = JSON.parse(readFileSync(new URL("values.json", import.meta.url), "utf8"));
for (const [figure, cases] of Object.entries(values))
  test(figure, async () => {
    const numbers = await import(`../../d2lmini/figures/numbers/${figure}.js`);
    for (const [i, { call, given, want }] of cases.entries()) {
      assert.ok(call in numbers, `${call} is not exported`);
      close(numbers[call](...given), want, `${call}, case ${i}`);
    }
  });
