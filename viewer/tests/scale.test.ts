import assert from "node:assert/strict";
import { test } from "node:test";
import { roundUp, StableMaximum } from "../src/scale.ts";

test("a maximum is round and not below what it is the maximum of", () => {
  assert.deepEqual([0, 1, 7, 11, 140, 160, 1409, 9999].map(roundUp), [1, 1, 8, 15, 150, 200, 1500, 10000]);
});

test("a maximum rises at once and falls only after many smaller frames", () => {
  const maximum = new StableMaximum();
  assert.ok(maximum.see(90));
  assert.equal(maximum.value, 100);
  for (let frame = 0; frame < 14; frame++) assert.ok(!maximum.see(20));
  assert.ok(maximum.see(20));
  assert.equal(maximum.value, 20);
});
