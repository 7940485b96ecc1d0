import assert from "node:assert/strict";
import { test } from "node:test";
import type { Box, MapInfo } from "../src/api.ts";
import { Projection } from "../src/projection.ts";

const BOXES: Record<MapInfo["coordinates"], Box> = {
  plain: [281, 3935, 23854, 30851],
  degrees: [116.1, 39.7, 116.7, 40.2],
  mercator: [1_000_000, 6_000_000, 1_020_000, 6_018_000],
};

const close = (found: readonly number[], wanted: readonly number[], within: number) =>
  found.forEach((value, place) => assert.ok(Math.abs(value - wanted[place]!) <= within, `${found} is not ${wanted}`));

for (const [coordinates, box] of Object.entries(BOXES) as [MapInfo["coordinates"], Box][]) {
  const projection = new Projection(box, coordinates);
  const width = box[2] - box[0];
  const places = [0, 0.2, 0.9, 1].map((share) => [box[0] + share * width, box[1] + (1 - share) * (box[3] - box[1])] as const);

  test(`${coordinates}: to mercator and to degrees and back again is the same place`, () => {
    for (const place of places) {
      close(projection.fromMercator(...projection.toMercator(...place)), place, 1e-9 * width);
      close(projection.fromLonLat(...projection.toLonLat(...place)), place, 1e-6 * width);
    }
  });

  test(`${coordinates}: the sheet spans the box, upwards`, () => {
    close(projection.toSheet(box[0], box[1]), [0, 0], 1e-9);
    close(projection.toSheet(box[2], box[3]), [1, 1], 1e-9);
    close(projection.shareToSheet(1, 0), [1, 0], 1e-9);
  });

  test(`${coordinates}: the middle of every cell is in that cell`, () => {
    for (let cell = 0; cell < 36; cell++) {
      const [x0, y0, x1, y1] = projection.cellBox(cell, 6);
      assert.equal(projection.cellAt((x0 + x1) / 2, (y0 + y1) / 2, 6), cell);
    }
    assert.equal(projection.cellAt(box[0] - width, box[1], 6), null);
  });
}

test("plain data keeps its shape", () => {
  const projection = new Projection([0, 0, 200, 100], "plain");
  assert.ok(Math.abs(projection.width / projection.height - 2) < 1e-9);
});

test("degrees far from the equator are stretched upwards as on every web map", () => {
  const projection = new Projection([0, 0, 60, 60], "degrees");
  assert.ok(projection.toSheet(0, 30)[1] < 0.45);
});
