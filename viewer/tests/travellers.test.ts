import assert from "node:assert/strict";
import { test } from "node:test";
import { largestMove, shownMoves } from "../src/map/arrows.ts";
import { Legs, PIECE } from "../src/map/legs.ts";
import { mergeTravellers, WIDTH } from "../src/map/merge.ts";
import { Projection } from "../src/projection.ts";
import { squareStreets, someFrame } from "./some.ts";

const round = (value: number) => Math.round(value * 1000) / 1000;
const row = (values: Float32Array, n: number, width = WIDTH) => [...values.subarray(n * width, (n + 1) * width)].map(round);
const projection = new Projection([0, 0, 10, 10], "plain");

test("travellers are matched by id; who is born fades in, who ends fades out", () => {
  const from = someFrame({ t: 1, ids: [2, 5, 9], x: [0, 65535, 0], y: [0, 0, 65535] });
  const to = someFrame({ t: 2, ids: [3, 5, 9], x: [65535, 0, 0], y: [65535, 0, 0] });
  const { ids, values } = mergeTravellers(from, to);
  assert.deepEqual([...ids], [2, 3, 5, 9]);
  assert.deepEqual(row(values, 0), [0, 0, 0, 0, 1, 0]);
  assert.deepEqual(row(values, 1), [1, 1, 1, 1, 0, 1]);
  assert.deepEqual(row(values, 2), [1, 0, 0, 0, 1, 1]);
  assert.deepEqual(row(values, 3), [0, 1, 0, 0, 1, 1]);
});

test("without streets a leg is one straight piece, and the one before it is there for the trail", () => {
  const [a, b, c] = [0, 65535, 0].map((x, t) => someFrame({ t, ids: [4], x: [x], y: [x] }));
  const legs = new Legs();
  assert.deepEqual(row(legs.between(a!, b!, projection, null), 0, PIECE), [0, 0, 1, 1, 0, 1, 1, 1]);
  const pieces = legs.between(b!, c!, projection, null);
  assert.deepEqual(row(pieces, 0, PIECE), [1, 1, 0, 0, 0, 1, 1, 1]);
  assert.deepEqual(row(pieces, 1, PIECE), [0, 0, 1, 1, -1, 0, 1, 1]);
  assert.equal(legs.count, 1);
});

test("on streets a trail has no more than six legs behind the one under way", () => {
  const legs = new Legs();
  const frames = Array.from({ length: 9 }, (_, t) => someFrame({ t, ids: [4], x: [t * 1000], y: [0] }));
  const counts = frames.slice(1).map((frame, t) => legs.between(frames[t]!, frame, projection, squareStreets()).length / PIECE);
  assert.deepEqual(counts, [1, 2, 3, 4, 5, 6, 7, 7]);
  assert.equal(legs.underWay, 1);
});

test("who stands still has a place and no trail", () => {
  const legs = new Legs();
  const frames = [0, 1, 2].map((t) => someFrame({ t, ids: [4], x: [0], y: [0] }));
  legs.between(frames[0]!, frames[1]!, projection, null);
  assert.deepEqual([...legs.between(frames[1]!, frames[2]!, projection, null)], [0, 0, 0, 0, 0, 1, 1, 1]);
});

test("after a jump in time there is no trail, and who stays has one piece", () => {
  const legs = new Legs();
  const [a, b] = [0, 65535].map((x, t) => someFrame({ t, ids: [4], x: [x], y: [x] }));
  legs.between(a!, b!, projection, null);
  const later = someFrame({ t: 7, ids: [4], x: [0], y: [0] });
  assert.deepEqual([...legs.between(later, later, projection, null)], [0, 0, 0, 0, 0, 1, 1, 1]);
});

test("on streets a leg turns at crossings, at one speed all along", () => {
  const from = someFrame({ t: 1, ids: [4], x: [0.5 * 65535], y: [0] });
  const to = someFrame({ t: 2, ids: [4], x: [65535], y: [0.25 * 65535] });
  const pieces = new Legs().between(from, to, projection, squareStreets());
  assert.equal(pieces.length, 2 * PIECE);
  assert.deepEqual(row(pieces, 0, PIECE), [0.5, 0, 1, 0, 0, 0.667, 1, 1]);
  assert.deepEqual(row(pieces, 1, PIECE), [1, 0, 1, 0.25, 0.667, 1, 1, 1]);
});

test("an arrow is drawn only where moves are beyond chance", () => {
  const frame = { ...someFrame({ t: 1 }), moves: Float32Array.from([3, 4, 30, 40, 0, 0, 0, 0]), flags: Uint8Array.from([0, 2, 0, 0]) };
  assert.deepEqual([...shownMoves(frame)!], [3, 4, 0, 0, 0, 0, 0, 0]);
  assert.equal(largestMove(frame), 5);
  assert.equal(largestMove({ ...frame, flags: null }), 50);
  assert.equal(largestMove(null), 0);
});
