import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameCache, frameBytes } from "../src/frames.ts";
import { someFrame } from "./some.ts";

const BYTES = frameBytes(someFrame({ t: 0 }));

function cache(room: number) {
  const asked: number[] = [];
  const aborted: number[] = [];
  const kept = new FrameCache((t, signal) => {
    asked.push(t);
    return new Promise((resolve, reject) => {
      setTimeout(() => resolve(someFrame({ t })), 5);
      signal.addEventListener("abort", () => {
        aborted.push(t);
        reject(new Error("aborted"));
      });
    });
  }, room * BYTES);
  return { kept, asked, aborted };
}

test("a frame is asked for once, also by two at the same time", async () => {
  const { kept, asked } = cache(5);
  const [first, second] = await Promise.all([kept.get(3), kept.get(3)]);
  assert.equal(first, second);
  assert.equal(await kept.get(3), first);
  assert.deepEqual(asked, [3]);
});

test("the least recently used frame is forgotten first", async () => {
  const { kept } = cache(2);
  await kept.get(1);
  await kept.get(2);
  await kept.get(1);
  await kept.get(3);
  assert.deepEqual([1, 2, 3].map((t) => kept.has(t)), [true, false, true]);
  assert.equal(kept.bytes, 2 * BYTES);
});

test("a frame larger than all the room is kept until the next", async () => {
  const { kept } = cache(0.5);
  await kept.get(1);
  assert.ok(kept.has(1));
  await kept.get(2);
  assert.deepEqual([kept.has(1), kept.has(2)], [false, true]);
});

test("everything can be asked for anew", async () => {
  const { kept, asked } = cache(5);
  await kept.get(1);
  kept.clear();
  assert.deepEqual([kept.has(1), kept.bytes], [false, 0]);
  await kept.get(1);
  assert.deepEqual(asked, [1, 1]);
});

test("what is not wanted any more is dropped, and can be asked for again", async () => {
  const { kept, asked, aborted } = cache(5);
  kept.want([1, 2]);
  const dropped = assert.rejects(kept.get(1));
  kept.want([2, 3]);
  await dropped;
  assert.deepEqual(aborted, [1]);
  assert.equal((await kept.get(1)).t, 1);
  assert.deepEqual(asked, [1, 2, 3, 1]);
});
