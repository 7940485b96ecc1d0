import assert from "node:assert/strict";
import { test } from "node:test";
import { Timeline } from "../src/timeline.ts";

function timeline(released: number[]) {
  const asked: [number, number][] = [];
  const times = new Timeline(
    async (first, last) => {
      asked.push([first, last]);
      return released.filter((t) => t >= first && t <= last);
    },
    () => (released.length ? [released[0]!, released.at(-1)!] : null),
  );
  return { times, asked };
}

test("holes are skipped in both directions, also long ones", async () => {
  const { times } = timeline([3, 4, 9, 5000]);
  assert.deepEqual(await Promise.all([times.next(3), times.next(4), times.next(9), times.next(5000)]), [4, 9, 5000, null]);
  assert.deepEqual(await Promise.all([times.previous(9), times.previous(5000), times.previous(3)]), [4, 9, null]);
});

test("the nearest release is found, also beyond the ends", async () => {
  const { times } = timeline([3, 4, 9, 5000]);
  assert.deepEqual(await Promise.all([-Infinity, 0, 6, 7, 2000, 1e9].map((t) => times.nearest(t))), [3, 3, 4, 9, 9, 5000]);
});

test("each block is asked for once, and a release that is heard of needs no question", async () => {
  const released = [0, 1, 2];
  const { times, asked } = timeline(released);
  await times.next(0);
  released.push(3);
  times.add(3);
  assert.equal(await times.next(2), 3);
  assert.deepEqual(asked, [[0, 999]]);
});

test("without releases there is nothing to find", async () => {
  const { times } = timeline([]);
  assert.deepEqual([await times.nearest(4), await times.next(0)], [null, null]);
});
