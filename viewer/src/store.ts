// Everything the page shows, in one place; parts listen to what concerns them.

import type { Box, MapInfo, Release, Status, Trips, ZoneCount } from "./api.ts";
import type { Frame } from "./frame.ts";

export type Connection = "connecting" | "live" | "stale";
export type Theme = "auto" | "light" | "dark";
export type Language = "en" | "de" | "zh";

export interface Layers {
  density: boolean;
  flows: boolean;
  travellers: boolean;
  roads: boolean;
  real: boolean; // the real data beside; in a simulation only
  zones: boolean; // instead of cells
}

// The cell under the pointer, and where on the page the pointer is.
export interface Hover {
  cell: number | null;
  zone: string | null; // instead of the cell, where zones are shown
  real: boolean; // on the map of the real data
  x: number;
  y: number;
}

export interface State {
  info: MapInfo;
  status: Status;
  connection: Connection;
  releases: Release[]; // the latest ones known, ascending; at most 1,000
  t: number; // the timestamp shown
  frame: Frame | null; // of t
  realFrame: Frame | null; // of t, in a simulation
  live: boolean; // follow the newest release
  playing: boolean;
  speed: number; // timestamps a second
  hover: Hover | null;
  cell: number | null; // the cell under inspection
  zones: readonly ZoneCount[]; // of t, where they are shown
  zone: string | null; // the zone under inspection
  trips: readonly Trips[]; // between zones, over the history that charts show
  names: ReadonlyMap<number, string>; // of cells that have one on the base map
  box: Box | null; // the area asked about
  drawing: boolean; // the next drag on the map draws a box
  layers: Layers;
  over: number; // timestamps over which numbers are averages; 1: those of t
  opacity: number; // of cells, 0 to 1
  theme: Theme;
  language: Language;
}

type Listener = (state: Readonly<State>) => void;

export class Store {
  private listeners: { keys: ReadonlySet<keyof State>; call: Listener }[] = [];

  constructor(private state: State) {}

  get now(): Readonly<State> {
    return this.state;
  }

  // Listeners of a changed key are called once per change, after all of it has taken effect.
  set(change: Partial<State>): void {
    const changed = (Object.keys(change) as (keyof State)[]).filter((key) => change[key] !== this.state[key]);
    if (!changed.length) return;
    this.state = { ...this.state, ...change };
    for (const { keys, call } of this.listeners) if (changed.some((key) => keys.has(key))) call(this.state);
  }

  // Calls at once, and again whenever one of the keys has changed.
  watch(keys: (keyof State)[], call: Listener): void {
    this.listeners.push({ keys: new Set(keys), call });
    call(this.state);
  }
}
