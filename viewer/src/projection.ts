// Where the campaign's box lies in the world. Four ways to name a place:
//   data      x, y as the campaign has them, y up
//   mercator  the web map's square, 0..1, y down
//   lon, lat  degrees, as MapLibre wants them
//   sheet     0..1 over the box in mercator, y up: what the graphics layer draws in

import type { Box, MapInfo } from "./api.ts";

export type Point = [number, number];

const WORLD_METRES = 2 * Math.PI * 6378137; // EPSG:3857 is this wide
const PLAIN_WIDTH = 1 / 4096; // of the world, for data without a place on earth: so small that nothing is bent

const DEGREES = 180 / Math.PI;

export const lonLatToMercator = (lon: number, lat: number): Point => [
  lon / 360 + 0.5,
  0.5 - (DEGREES * Math.log(Math.tan(Math.PI / 4 + lat / DEGREES / 2))) / 360,
];

export const mercatorToLonLat = (mx: number, my: number): Point => [
  (mx - 0.5) * 360,
  2 * DEGREES * Math.atan(Math.exp(((0.5 - my) * 360) / DEGREES)) - 90,
];

type Pair = [to: (x: number, y: number) => Point, from: (mx: number, my: number) => Point];

function plain([x0, y0, x1, y1]: Box): Pair {
  const size = PLAIN_WIDTH / Math.max(x1 - x0, y1 - y0);
  const [cx, cy] = [(x0 + x1) / 2, (y0 + y1) / 2];
  return [
    (x, y) => [0.5 + (x - cx) * size, 0.5 - (y - cy) * size],
    (mx, my) => [cx + (mx - 0.5) / size, cy - (my - 0.5) / size],
  ];
}

const metres: Pair = [
  (x, y) => [0.5 + x / WORLD_METRES, 0.5 - y / WORLD_METRES],
  (mx, my) => [(mx - 0.5) * WORLD_METRES, (0.5 - my) * WORLD_METRES],
];

export class Projection {
  readonly toMercator: Pair[0];
  readonly fromMercator: Pair[1];
  readonly left: number; // of the box, in mercator
  readonly bottom: number;
  readonly width: number;
  readonly height: number;

  constructor(
    readonly box: Box,
    coordinates: MapInfo["coordinates"],
  ) {
    const pairs = { plain: () => plain(box), mercator: () => metres, degrees: () => [lonLatToMercator, mercatorToLonLat] as Pair };
    [this.toMercator, this.fromMercator] = pairs[coordinates]();
    const [left, bottom] = this.toMercator(box[0], box[1]);
    const [right, top] = this.toMercator(box[2], box[3]);
    this.left = left;
    this.bottom = bottom;
    this.width = right - left;
    this.height = bottom - top;
  }

  toLonLat(x: number, y: number): Point {
    return mercatorToLonLat(...this.toMercator(x, y));
  }

  fromLonLat(lon: number, lat: number): Point {
    return this.fromMercator(...lonLatToMercator(lon, lat));
  }

  toSheet(x: number, y: number): Point {
    const [mx, my] = this.toMercator(x, y);
    return [(mx - this.left) / this.width, (this.bottom - my) / this.height];
  }

  // A place given as a share of the box's width and height, as frames have it.
  shareToSheet(u: number, v: number): Point {
    const [x0, y0, x1, y1] = this.box;
    return this.toSheet(x0 + u * (x1 - x0), y0 + v * (y1 - y0));
  }

  // The cell of a place, or null outside of the box.
  cellAt(x: number, y: number, side: number): number | null {
    const [x0, y0, x1, y1] = this.box;
    const column = Math.floor(((x - x0) / (x1 - x0)) * side);
    const row = Math.floor(((y - y0) / (y1 - y0)) * side);
    return column < 0 || row < 0 || column >= side || row >= side ? null : row * side + column;
  }

  cellBox(cell: number, side: number): Box {
    const [x0, y0, x1, y1] = this.box;
    const column = cell % side;
    const row = (cell - column) / side;
    const [width, height] = [(x1 - x0) / side, (y1 - y0) / side];
    return [x0 + column * width, y0 + row * height, x0 + (column + 1) * width, y0 + (row + 1) * height];
  }
}
