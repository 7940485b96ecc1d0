import assert from "node:assert/strict";
import { test } from "node:test";
import { largestFlow, resultants } from "../src/map/arrows.ts";
import { mergeTravellers, WIDTH } from "../src/map/merge.ts";
import { someFrame } from "./some.ts";

const row = (values: Float32Array, n: number) => [...values.subarray(n * WIDTH, (n + 1) * WIDTH)].map((value) => Math.round(value * 65535) / 65535);

test("travellers are matched by id; who is born fades in, who ends fades out", () => {
  const from = someFrame({ t: 1, ids: [2, 5, 9], x: [0, 65535, 0], y: [0, 0, 65535] });
  const to = someFrame({ t: 2, ids: [3, 5, 9], x: [65535, 0, 0], y: [65535, 0, 0] });
  const { ids, values } = mergeTravellers(from, to, null);
  assert.deepEqual([...ids], [2, 3, 5, 9]);
  assert.deepEqual(row(values, 0), [0, 0, 0, 0, 0, 0, 1, 0]);
  assert.deepEqual(row(values, 1), [1, 1, 1, 1, 1, 1, 0, 1]);
  assert.deepEqual(row(values, 2), [1, 0, 1, 0, 0, 0, 1, 1]);
  assert.deepEqual(row(values, 3), [0, 1, 0, 1, 0, 0, 1, 1]);
});

test("a tail knows where its traveller was before", () => {
  const [a, b, c] = [0, 65535, 0].map((x, t) => someFrame({ t, ids: [4], x: [x], y: [x] }));
  const { values } = mergeTravellers(b!, c!, mergeTravellers(a!, b!, null));
  assert.deepEqual(row(values, 0), [0, 0, 1, 1, 0, 0, 1, 1]);
});

test("a tail begins where its traveller was born", () => {
  const [a, b, c] = [[], [7], [7]].map((ids, t) => someFrame({ t, ids, x: ids.map(() => 65535), y: ids.map(() => 0) }));
  const { values } = mergeTravellers(b!, c!, mergeTravellers(a!, b!, null));
  assert.deepEqual(row(values, 0), [1, 0, 1, 0, 1, 0, 1, 1]);
});

test("an arrow is the sum of all moves, and staying is none", () => {
  const flows = new Uint32Array(9);
  flows[4] = 100; // stay
  flows[5] = 3; // right
  flows[3] = 1; // left
  flows[8] = 2; // up and right
  assert.deepEqual([...resultants(flows)], [4, 2]);
  assert.equal(largestFlow(flows), Math.hypot(4, 2));
  assert.equal(largestFlow(null), 0);
});
