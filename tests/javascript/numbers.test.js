// What modules of JavaScript give beside what the package gives: values.json, which values.py writes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// Fails where two values differ by more than the share `within` of what is wanted, and of a tenth besides.
function close(got, want, within, path) {
  if (typeof want === "number") {
    assert.equal(typeof got, "number", path);
    assert.ok(Math.abs(got - want) <= within * (Math.abs(want) + 0.1), `${path}: ${got}, expected ${want}`);
  } else if (want !== null && typeof want === "object") {
    const plain = ArrayBuffer.isView(got) ? Array.from(/** @type {Float32Array} */ (got)) : got;
    assert.deepEqual(Object.keys(plain ?? {}), Object.keys(want), path);
    for (const key of Object.keys(want)) close(plain[key], want[key], within, `${path}.${key}`);
  } else assert.equal(got, want, path);
}

const values = JSON.parse(readFileSync(new URL("values.json", import.meta.url), "utf8"));
for (const [name, { module, within, cases }] of Object.entries(values))
  test(name, async () => {
    const { ways = { "": () => {} }, ...calls } = await import(`../../${module}`);
    for (const [way, begin] of Object.entries(ways)) {
      await begin(); // the same numbers in each of the ways in which a module can work
      for (const [i, { call, given, want }] of cases.entries()) {
        assert.ok(call in calls, `${call} is not exported`);
        close(calls[call](...structuredClone(given)), want, within, `${call}, case ${i} ${way}`);
      }
    }
  });
