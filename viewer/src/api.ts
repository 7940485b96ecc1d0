// What the server says, and how it is asked. Every address is below that of the page, which may have a token in it.

import { type About, decodeFrame, type Frame } from "./frame.ts";

export type Box = readonly [x0: number, y0: number, x1: number, y1: number];

export interface Status {
  campaign: string;
  manifest: string;
  method: string;
  guarantee: string;
  epsilon: number;
  window: number;
  unit: "position" | "transition";
  presence: string;
  period: number; // seconds
  epoch: number; // Unix seconds of timestamp 0
  box: Box;
  grid: number;
  round: number | null;
  next_round_in: number;
  n_reports: number;
  n_releases: number;
  oldest_release: number | null;
  newest_release: number | null;
  ready: boolean;
  reason: string;
}

export interface MapInfo {
  mode: "campaign" | "simulation" | "recording";
  unfolds: boolean; // whether more releases may come
  coordinates: "plain" | "degrees" | "mercator";
  style: string | null;
  roads: boolean;
  attribution: string;
  travellers: number;
  zones: string | null; // how questions call the zones that can be shown instead of cells
}

export interface Release {
  t: number;
  time: string;
  n_points: number;
  n_born: number;
  n_ended: number;
  n_reports: number;
  epsilon: number;
}

// After how many linked reports from one place that place is known; null: not known, or never.
export interface UsualPlace {
  reports: number;
  timestamps: number;
  nights: number | null;
  lifetime_cap: number | null;
}

export interface Receipt {
  guarantee: string;
  not_protected: string[];
  usual_place: UsualPlace | null;
  n_reports: number;
  worst_window: { declared: { epsilon: number } };
}

export interface Band {
  low: (number | null)[];
  high: (number | null)[];
  unclear: boolean[];
}

export interface Neighbour {
  cell: number;
  n: number;
  low: number | null;
  high: number | null;
}

export interface CellHistory {
  cell: number;
  t: number[];
  n: number[];
  inflow: (number | null)[];
  outflow: (number | null)[];
  n_band: Band | null;
  inflow_band: Band | null;
  outflow_band: Band | null;
  destinations: Neighbour[];
  origins: Neighbour[];
}

export interface AreaCount {
  box: Box;
  t: number[];
  n: number[];
  band: Band | null;
}

export interface Errors {
  t: number[];
  density_error: number[];
}

export interface ZoneCount extends About {
  zone: string;
  unclear: boolean;
  shape: GeoJSON.Polygon | GeoJSON.MultiPolygon; // in the coordinates of the data
}

export interface Trips extends About {
  origin: string;
  destination: string;
  unclear: boolean;
}

interface Answer {
  value: number;
  low: number | null;
  high: number | null;
  unclear: boolean | null;
}

const answered = ({ value, low, high, unclear }: Answer) => ({
  n: value,
  ...(low !== null && high !== null && { low, high }),
  unclear: unclear ?? false,
});

// The server answered, and refused; `status` 0 means that it did not answer at all.
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { signal: signal ?? null, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "no answer");
  }
  if (!answer.ok) throw new Refused(answer.status, `${answer.status} ${answer.statusText}`);
  return answer;
}

async function askJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(path, signal)).json()) as T;
}

const range = (first: number, last: number) => `from=${first}&to=${last}`;

export const areaPath = (box: Box, first: number, last: number, over: number, format: "json" | "csv") =>
  `v1/count?box=${box.join(",")}&${range(first, last)}&over=${over}&format=${format}`;

const framePath = (place: string, t: number, travellers: number, over: number) => `${place}/${t}?travellers=${travellers}&over=${over}`;

export const api = {
  status: (signal?: AbortSignal) => askJson<Status>("v1/status", signal),
  map: () => askJson<MapInfo>("v1/map"),
  roads: () => askJson<GeoJSON.FeatureCollection>("v1/map/roads"),
  releases: async (first: number, last: number) =>
    (await askJson<{ releases: Release[] }>(`v1/releases?${range(first, last)}&limit=1000`)).releases,
  receipt: () => askJson<Receipt>("v1/receipts/latest"),
  frame: async (t: number, travellers: number, over: number, signal?: AbortSignal): Promise<Frame> =>
    decodeFrame(await (await ask(framePath("v1/frames", t, travellers, over), signal)).arrayBuffer()),
  realFrame: async (t: number, travellers: number, over: number, signal?: AbortSignal): Promise<Frame> =>
    decodeFrame(await (await ask(framePath("v1/real/frames", t, travellers, over), signal)).arrayBuffer()),
  zoneCounts: async (zones: string, first: number, last: number, signal?: AbortSignal): Promise<ZoneCount[]> => {
    const path = `v1/ask/counts?zones=${encodeURIComponent(zones)}&${range(first, last)}&format=geojson`;
    const { features } = await askJson<GeoJSON.FeatureCollection<ZoneCount["shape"] | null, Answer & { zone: string }>>(path, signal);
    return features.flatMap(({ geometry, properties }) => (geometry ? [{ zone: properties.zone, ...answered(properties), shape: geometry }] : []));
  },
  trips: async (zones: string, first: number, last: number, signal?: AbortSignal): Promise<Trips[]> => {
    const path = `v1/ask/od?zones=${encodeURIComponent(zones)}&${range(first, last)}`;
    const { rows } = await askJson<{ rows: (Answer & { origin: string; destination: string })[] }>(path, signal);
    return rows.map(({ origin, destination, ...answer }) => ({ origin, destination, ...answered(answer) }));
  },
  errors: (first: number, last: number) => askJson<Errors>(`v1/real/errors?${range(first, last)}`),
  cell: (cell: number, first: number, last: number, over: number, signal?: AbortSignal) =>
    askJson<CellHistory>(`v1/cells/${cell}?${range(first, last)}&over=${over}`, signal),
  area: (box: Box, first: number, last: number, over: number, signal?: AbortSignal) =>
    askJson<AreaCount>(areaPath(box, first, last, over, "json"), signal),
};
