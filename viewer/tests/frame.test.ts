import assert from "node:assert/strict";
import { test } from "node:test";
import { about, decodeFrame, isUnclear, movesByChance } from "../src/frame.ts";

// Numbers count up from 10 on, totals first, so that each is found where it belongs.
function packed({ moves, n, replicas = 0, version = 2 }: { moves: boolean; n: number; replicas?: number; version?: number }): ArrayBuffer {
  const even = n + (n % 2);
  const floats = 3 + 4 + (moves ? 8 : 0) + (replicas ? 2 * 7 : 0);
  const flags = replicas ? 1 : 0;
  const buffer = new ArrayBuffer(4 * (9 + floats + flags + n + even));
  const words = new Uint32Array(buffer);
  words.set([version, 7, 2, 6, replicas, 20, moves ? 1 : 0, n, 5]);
  new Float32Array(buffer).set(Array.from({ length: floats }, (_, place) => 10 + place), 9);
  if (flags) new Uint8Array(buffer, 4 * (9 + floats), 4).set([0, 1, 2, 3]);
  const ids = 9 + floats + flags;
  for (let k = 0; k < n; k++) words[ids + k] = 100 + k;
  const halves = new Uint16Array(buffer, 4 * (ids + n));
  for (let k = 0; k < n; k++) {
    halves[k] = 1000 + k;
    halves[even + k] = 2000 + k;
  }
  return buffer;
}

test("a frame has what the server packed", () => {
  const frame = decodeFrame(packed({ moves: true, n: 3 }));
  assert.deepEqual([frame.t, frame.side, frame.rounds, frame.replicas, frame.nReports, frame.halvings], [7, 2, 6, 0, 20, 5]);
  assert.deepEqual([...frame.totals.n], [10, 11, 12]);
  assert.deepEqual([...frame.cells.n], [13, 14, 15, 16]);
  assert.deepEqual([...frame.moves!], [17, 18, 19, 20, 21, 22, 23, 24]);
  assert.deepEqual([...frame.ids], [100, 101, 102]);
  assert.deepEqual([...frame.x], [1000, 1001, 1002]);
  assert.deepEqual([...frame.y], [2000, 2001, 2002]);
});

test("a frame without a previous release has no moves", () => {
  const frame = decodeFrame(packed({ moves: false, n: 2 }));
  assert.equal(frame.moves, null);
  assert.deepEqual([...frame.y], [2000, 2001]);
});

test("with replicas every number has an interval, and what may be chance is told", () => {
  const frame = decodeFrame(packed({ moves: true, n: 1, replicas: 20 }));
  assert.deepEqual(about(frame.totals, 2), { n: 12, low: 27, high: 30 });
  assert.deepEqual(about(frame.cells, 3), { n: 16, low: 34, high: 38 });
  assert.deepEqual([0, 1, 2, 3].map((cell) => isUnclear(frame, cell)), [false, true, false, true]);
  assert.deepEqual([0, 1, 2, 3].map((cell) => movesByChance(frame, cell)), [false, false, true, true]);
  assert.deepEqual([...frame.ids, ...frame.y], [100, 2000]);
});

test("without replicas nothing is said of errors", () => {
  const frame = decodeFrame(packed({ moves: true, n: 1 }));
  assert.deepEqual(about(frame.cells, 3), { n: 16 });
  assert.equal(isUnclear(frame, 1) || movesByChance(frame, 2), false);
});

test("a frame of another version is refused", () => {
  assert.throws(() => decodeFrame(packed({ moves: false, n: 0, version: 1 })), /version 1/);
});
