import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbour } from "../src/map/keyboard.ts";
import { boxBetween } from "../src/map/pointer.ts";

test("the neighbour of a cell is beside it, and the edge is the end", () => {
  assert.deepEqual([[1, 0], [-1, 0], [0, 1], [0, -1]].map((way) => neighbour(0, way as [number, number], 3)), [1, 0, 3, 0]);
  assert.equal(neighbour(8, [1, 1], 3), 8);
});

test("a box is the same however it was drawn, and stays inside of the campaign's", () => {
  assert.deepEqual(boxBetween([5, 1], [2, 20], [0, 0, 10, 10]), [2, 1, 5, 10]);
});
