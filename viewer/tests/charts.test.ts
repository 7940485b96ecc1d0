import assert from "node:assert/strict";
import { test } from "node:test";

import { bandPath, linePath, placeOf, ticks } from "../src/charts/axes.ts";
import { sparkPath } from "../src/charts/spark.ts";

test("marks are round and cover the top", () => {
  assert.deepEqual(ticks(2842, 3), [0, 1000, 2000, 3000]);
  assert.deepEqual(ticks(0.027, 3), [0, 0.01, 0.02, 0.03]);
  assert.deepEqual(ticks(0, 3, 1), [0, 1]);
});

test("people are marked in whole numbers", () => {
  assert.deepEqual(ticks(2, 3, 1), [0, 1, 2]);
});

test("an unknown value leaves a gap in a line", () => {
  const path = linePath([1, null, 3, 4], (i) => i, (value) => value);
  assert.equal(path, "M0.0 1.0M2.0 3.0L3.0 4.0");
});

test("a band goes there along its upper edge and back along its lower one, with gaps", () => {
  const path = bandPath([1, null, 2, 3], [5, null, 6, 7], (i) => i, (value) => value);
  assert.equal(path, "M0.0 5.0L0.0 1.0ZM2.0 6.0L3.0 7.0L3.0 3.0L2.0 2.0Z");
});

test("a timestamp is found, or the last one before it", () => {
  assert.equal(placeOf(5, [1, 5, 9]), 1);
  assert.equal(placeOf(8, [1, 5, 9]), 1);
  assert.equal(placeOf(0, [1, 5, 9]), -1);
  assert.equal(placeOf(9, [1, 5, 9]), 2);
});

test("the hill stands where its timestamps are in the whole history", () => {
  assert.equal(sparkPath([5, 10], [2, 4], { first: 0, last: 10 }), "M50.00 100L50.00 50.0L100.00 0.0L100.00 100Z");
  assert.equal(sparkPath([5], [2], { first: 5, last: 5 }), "");
});
