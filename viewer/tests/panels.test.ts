import assert from "node:assert/strict";
import { test } from "node:test";

import { Refused, type Status } from "../src/api.ts";
import { namesOf } from "../src/map/places.ts";
import { readBox, rounded } from "../src/panels/area.ts";
import { busiest, calledCell, cellName } from "../src/panels/cells.ts";
import { roundsOfHour } from "../src/panels/overlay.ts";
import { Query, stretch } from "../src/panels/query.ts";
import { Projection } from "../src/projection.ts";

const released = (oldest: number | null, newest: number | null) => ({ oldest_release: oldest, newest_release: newest }) as Status;

test("cells are named as in the report: letters from the west, numbers from the south", () => {
  assert.equal(cellName(0, 18), "A1");
  assert.equal(cellName(171, 18), "J10");
  assert.equal(cellName(27, 30), "AB1");
});

test("a cell has the name of the place nearest to its middle", () => {
  const places = [{ name: "Edge", lon: 0.1, lat: 0.1 }, { name: "Middle", lon: 0.6, lat: 0.5 }, { name: "Elsewhere", lon: 9, lat: 9 }];
  const names = namesOf(places, new Projection([0, 0, 2, 2], "degrees"), 2);
  assert.deepEqual([...names], [[0, "Middle"]]);
  const status = { grid: 2 } as Status;
  assert.deepEqual([0, 3].map((cell) => calledCell(cell, { names, status })), ["A1 Middle", "B2"]);
});

test("the busiest cells come first, empty ones not at all", () => {
  assert.deepEqual(busiest([0, 3, 9, 3, 0, 1], 3), [2, 1, 3]);
  assert.deepEqual(busiest([0, 0], 3), []);
});

test("an average is over an hour if rounds make one, else over ten rounds", () => {
  assert.equal(roundsOfHour({ epoch: 1_772_236_800, period: 300 } as Status), 12);
  assert.equal(roundsOfHour({ epoch: 1_772_236_800, period: 7200 } as Status), 10);
  assert.equal(roundsOfHour({ epoch: 1_772_236_800, period: 1 } as Status), 10);
  assert.equal(roundsOfHour({ epoch: 0, period: 300 } as Status), 10);
});

test("a typed box needs four numbers in order; a comma is a decimal point", () => {
  assert.deepEqual(readBox(["116,35", "39.9", " 116.45 ", "40"]), [116.35, 39.9, 116.45, 40]);
  assert.equal(readBox(["1", "2", "", "4"]), null);
  assert.equal(readBox(["3", "2", "1", "4"]), null);
  assert.equal(readBox(["a", "2", "1", "4"]), null);
});

test("an edge is shown with as many digits as matter", () => {
  assert.equal(rounded(116.34105152642223, [116.2, 39.79, 116.58, 40.05]), 116.341052);
  assert.equal(rounded(1234.56789, [0, 0, 1_000_000, 1_000_000]), 1235);
});

test("a question covers the time shown, and the newest release if it can", () => {
  assert.equal(stretch(released(null, null), 0), null);
  assert.deepEqual(stretch(released(0, 100), 50), { first: 0, last: 100 });
  assert.deepEqual(stretch(released(0, 1000), 990), { first: 601, last: 1000 });
  const far = stretch(released(0, 1000), 300)!;
  assert.ok(far.first <= 300 && 300 <= far.last && far.last - far.first < 400);
});

test("a newer question replaces an older one", async () => {
  const taken: string[] = [];
  let n = 0;
  const query = new Query(
    async () => {
      const name = `answer ${++n}`;
      await new Promise((resolve) => setTimeout(resolve, 5));
      return name;
    },
    (answer) => taken.push(answer),
    () => {},
  );
  query.start();
  query.start();
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.deepEqual(taken, ["answer 2"]);
});

test("a refusal is told, and forgotten with the next answer", async () => {
  const told: (number | null)[] = [];
  let refuses = true;
  const query = new Query(
    async () => {
      if (refuses) throw new Refused(404, "404 Not Found");
      return 1;
    },
    () => {},
    (error) => told.push(error?.status ?? null),
  );
  query.start();
  await new Promise((resolve) => setTimeout(resolve, 5));
  refuses = false;
  query.start();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(told, [404, null]);
});
