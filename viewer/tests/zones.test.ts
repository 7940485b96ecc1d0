import assert from "node:assert/strict";
import { test } from "node:test";

import { middleOf, shade } from "../src/map/zones.ts";

test("a zone has the colour at its share of the ramp", () => {
  const ramp = ["#000000", "#ffffff", "#ff0000"];
  assert.equal(shade(ramp, 0), "rgb(0,0,0)");
  assert.equal(shade(ramp, 0.25), "rgb(128,128,128)");
  assert.equal(shade(ramp, 1), "rgb(255,0,0)");
});

test("lines begin in the middle of a zone, or of its largest part", () => {
  const square = (x: number, y: number, size: number) => [[[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]];
  assert.deepEqual(middleOf({ type: "Polygon", coordinates: square(2, 4, 2) }), [3, 5]);
  assert.deepEqual(middleOf({ type: "MultiPolygon", coordinates: [square(0, 0, 1), square(10, 10, 4)] }), [12, 12]);
});
