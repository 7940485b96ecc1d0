import assert from "node:assert/strict";
import { test } from "node:test";
import { PIECE, piecesOf, Streets } from "../src/map/streets.ts";
import { Projection } from "../src/projection.ts";
import { squareStreets } from "./some.ts";

const way = (streets: Streets, ...ends: [number, number, number, number]) => {
  streets.begin();
  return streets.way(...ends).map((value) => Math.round(value * 1000) / 1000);
};

test("roads become pieces on the sheet, with their class or one in the middle", () => {
  const line = [[0, 0], [10, 0], [10, 5]];
  const feature = (properties: GeoJSON.GeoJsonProperties): GeoJSON.Feature => ({ type: "Feature", properties, geometry: { type: "LineString", coordinates: line } });
  const roads: GeoJSON.FeatureCollection = { type: "FeatureCollection", features: [feature({ class: 1, oneway: "yes" }), feature({ class: "x" })] };
  const pieces = piecesOf(roads, new Projection([0, 0, 10, 10], "plain"));
  assert.equal(pieces.length, 4 * PIECE);
  assert.deepEqual([...pieces.subarray(PIECE, 2 * PIECE)].map((value) => Math.round(value * 100) / 100), [1, 0, 1, 0.5, 1, 1]);
  assert.deepEqual([...pieces.subarray(-2)], [3, 0]);
});

test("a place lies on the street that passes it, and far from all on none", () => {
  const streets = squareStreets();
  assert.deepEqual(streets.spot(0.25, 0.001), { piece: 0, share: 0.25 });
  assert.equal(streets.spot(0.5, 0.5), null);
});

test("the way around a corner passes it, and back the same way", () => {
  assert.deepEqual(way(squareStreets(), 0.5, 0, 1, 0.25), [0.5, 0, 1, 0, 1, 0.25]);
  assert.deepEqual(way(squareStreets(), 1, 0.25, 0.5, 0), [1, 0.25, 1, 0, 0.5, 0]);
});

test("the fastest way is taken, not the shortest", () => {
  assert.deepEqual(way(squareStreets(), 0.6, 0, 0.6, 1), [0.6, 0, 1, 0, 1, 1, 0.6, 1]);
  assert.deepEqual(way(squareStreets([3, 5, 0, 0]), 0.6, 0, 0.6, 1), [0.6, 0, 0, 0, 0, 1, 0.6, 1]);
});

test("along one street, off the streets and without a connection the way is straight", () => {
  assert.deepEqual(way(squareStreets(), 0.2, 0, 0.7, 0), [0.2, 0, 0.7, 0]);
  assert.deepEqual(way(squareStreets(), 0.2, 0, 0.5, 0.5), [0.2, 0, 0.5, 0.5]);
  const apart = new Streets(Float32Array.from([0, 0, 1, 0, 3, 0, 0, 1, 1, 1, 3, 0]), [1, 1]);
  assert.deepEqual(way(apart, 0.5, 0, 0.5, 1), [0.5, 0, 0.5, 1]);
});

test("a one-way street is not driven the wrong way", () => {
  const around = squareStreets([3, 3, 3, 3], 1);
  assert.deepEqual(way(around, 0.5, 0, 1, 0.25), [0.5, 0, 1, 0, 1, 0.25]);
  assert.deepEqual(way(around, 1, 0.25, 0.5, 0), [1, 0.25, 1, 1, 0, 1, 0, 0, 0.5, 0]);
});

test("the fastest ways through a grid of streets are as long as plain search finds them", () => {
  const n = 9;
  const pieces: number[] = [];
  let word = 1;
  const kind = () => (word = (word * 48271) % 2147483647) % 7;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j + 1 < n; j++) {
      pieces.push(j / (n - 1), i / (n - 1), (j + 1) / (n - 1), i / (n - 1), kind(), 0);
      pieces.push(i / (n - 1), j / (n - 1), i / (n - 1), (j + 1) / (n - 1), kind(), 0);
    }
  }
  const streets = new Streets(Float32Array.from(pieces), [1, 1]);
  const time = (places: number[]) => {
    let sum = 0;
    for (let at = 2; at < places.length; at += 2) {
      const [x0, y0, x1, y1] = places.slice(at - 2, at + 2) as [number, number, number, number];
      const spot = streets.spot((x0 + x1) / 2, (y0 + y1) / 2)!;
      sum += Math.hypot(x1 - x0, y1 - y0) * 1.5 ** streets.pieces[spot.piece * PIECE + 4]!;
    }
    return sum;
  };
  const place = (node: number): [number, number] => [(node % n) / (n - 1), Math.floor(node / n) / (n - 1)];
  for (const [from, to] of [[0, 80], [4, 76], [36, 44], [10, 61]] as const) {
    const best = new Array<number>(n * n).fill(Infinity);
    best[from] = 0;
    for (let round = 0; round < n * n; round++) {
      for (let at = 0; at < pieces.length; at += PIECE) {
        const [x0, y0, x1, y1, slow] = pieces.slice(at, at + PIECE) as [number, number, number, number, number];
        const [a, b] = [[x0, y0], [x1, y1]].map(([x, y]) => Math.round(y! * (n - 1)) * n + Math.round(x! * (n - 1))) as [number, number];
        const cost = Math.hypot(x1 - x0, y1 - y0) * 1.5 ** slow;
        best[a] = Math.min(best[a]!, best[b]! + cost);
        best[b] = Math.min(best[b]!, best[a]! + cost);
      }
    }
    streets.begin();
    assert.ok(Math.abs(time(streets.way(...place(from), ...place(to))) - best[to]!) < 1e-5);
  }
});
