// Frames and a state of the page to test with.

import type { Status } from "../src/api.ts";
import type { Frame } from "../src/frame.ts";
import { Streets } from "../src/map/streets.ts";
import { type State, Store } from "../src/store.ts";

export function someFrame({ t, ids = [], x = [], y = [] }: { t: number; ids?: number[]; x?: number[]; y?: number[] }): Frame {
  return {
    t,
    side: 2,
    rounds: 1,
    replicas: 0,
    nReports: 0,
    totals: { n: new Float32Array(3), low: null, high: null },
    cells: { n: new Float32Array(4), low: null, high: null },
    moves: null,
    flags: null,
    halvings: 0,
    ids: Uint32Array.from(ids),
    x: Uint16Array.from(x),
    y: Uint16Array.from(y),
  };
}

export function someStore({ newest, period = 10, ...state }: { newest: number | null; period?: number } & Partial<State>): Store {
  const status = { newest_release: newest, oldest_release: newest === null ? null : 0, period, grid: 2, box: [0, 0, 1, 1] } as unknown as Status;
  return new Store({
    info: { mode: "campaign", unfolds: true, coordinates: "plain", style: null, roads: false, attribution: "", travellers: 0, zones: null },
    status,
    connection: "live",
    releases: [],
    t: newest ?? 0,
    frame: null,
    realFrame: null,
    live: true,
    playing: true,
    speed: 2,
    hover: null,
    zones: [],
    zone: null,
    trips: [],
    names: new Map(),
    cell: null,
    box: null,
    drawing: false,
    layers: { density: true, flows: true, travellers: true, roads: false, real: false, zones: false },
    over: 1,
    opacity: 1,
    theme: "auto",
    language: "en",
    ...state,
  });
}

// Four streets around the whole sheet, from the lower left corner to the right and round.
export function squareStreets(classes: readonly number[] = [3, 3, 3, 3], oneWay = 0): Streets {
  const corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]];
  return new Streets(Float32Array.from(classes.flatMap((kind, i) => [...corners[i]!, ...corners[i + 1]!, kind, oneWay])), [1, 1]);
}
