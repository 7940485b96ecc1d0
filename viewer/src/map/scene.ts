// What the graphics layer is to draw, as all its parts read it.

import type { Frame } from "../frame.ts";
import type { Projection } from "../projection.ts";
import type { Palette } from "./palette.ts";
import type { Streets } from "./streets.ts";

export type Rectangle = readonly [left: number, bottom: number, right: number, top: number]; // on the sheet

export interface Scene {
  readonly projection: Projection;
  readonly side: number;
  palette: Palette;
  opacity: number; // of cells
  from: Frame | null;
  to: Frame | null;
  pair: number; // counts the changes of from and to
  progress: number; // 0 at from, 1 at to
  maxCount: number;
  maxFlow: number;
  show: { density: boolean; flows: boolean; travellers: boolean; roads: boolean; zones: boolean };
  streets: Streets | null;
  hovered: Rectangle | null;
  selected: Rectangle | null;
  area: Rectangle | null;
}
