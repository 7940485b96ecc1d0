import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFrame } from "../src/frame.ts";

function packed({ flows, n }: { flows: boolean; n: number }): ArrayBuffer {
  const even = n + (n % 2);
  const buffer = new ArrayBuffer(40 + 4 * 4 + (flows ? 4 * 36 : 0) + 4 * n + 4 * even);
  const words = new Uint32Array(buffer);
  words.set([1, 7, 2, 50, 3, 4, 20, flows ? 1 : 0, n, 5]);
  words.set([10, 11, 12, 13], 10);
  if (flows) words.set(Array.from({ length: 36 }, (_, place) => place), 14);
  const ids = 14 + (flows ? 36 : 0);
  for (let k = 0; k < n; k++) words[ids + k] = 100 + k;
  const halves = new Uint16Array(buffer, 4 * (ids + n));
  for (let k = 0; k < n; k++) {
    halves[k] = 1000 + k;
    halves[even + k] = 2000 + k;
  }
  return buffer;
}

test("a frame has what the server packed", () => {
  const frame = decodeFrame(packed({ flows: true, n: 3 }));
  assert.deepEqual([frame.t, frame.side, frame.nPoints, frame.nBorn, frame.nEnded, frame.nReports, frame.halvings], [7, 2, 50, 3, 4, 20, 5]);
  assert.deepEqual([...frame.counts], [10, 11, 12, 13]);
  assert.equal(frame.flows?.[35], 35);
  assert.deepEqual([...frame.ids], [100, 101, 102]);
  assert.deepEqual([...frame.x], [1000, 1001, 1002]);
  assert.deepEqual([...frame.y], [2000, 2001, 2002]);
});

test("a frame without a previous release has no flows", () => {
  const frame = decodeFrame(packed({ flows: false, n: 2 }));
  assert.equal(frame.flows, null);
  assert.deepEqual([...frame.y], [2000, 2001]);
});

test("a frame of another version is refused", () => {
  const buffer = packed({ flows: false, n: 0 });
  new Uint32Array(buffer)[0] = 2;
  assert.throws(() => decodeFrame(buffer), /version 2/);
});
