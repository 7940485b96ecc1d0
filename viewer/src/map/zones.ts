// Zones instead of cells, and the trips from one of them: layers of the base map, below its first label.

import type { GeoJSONSource, GeoJSONSourceSpecification, Map as MapLibreMap, StyleImageInterface } from "maplibre-gl";
import type { Trips, ZoneCount } from "../api.ts";
import type { Projection } from "../projection.ts";
import { type Palette, rgb } from "./palette.ts";

const ZONES = "retrasyn-zones"; // names of layers, sources and a picture
const TRIPS = "retrasyn-trips";
const HATCH = "retrasyn-hatch";
const STRIPE = 16; // pixels from one stripe to the next, on a picture for screens of two pixels each
const WIDEST = 9; // CSS pixels, of a line

export interface ZoneScene {
  shown: boolean;
  zones: readonly ZoneCount[];
  chosen: string | null;
  trips: readonly Trips[];
  most: number; // travellers of the last colour
  opacity: number;
  palette: Palette;
}

export class ZoneLayers {
  private scene: ZoneScene | null = null;

  constructor(
    private readonly map: MapLibreMap,
    private readonly projection: Projection,
  ) {
    // A change of the theme takes away what is not of the style. What is added here is told, too.
    map.on("styledata", () => this.scene?.shown && !map.getLayer(TRIPS) && queueMicrotask(() => this.draw()));
  }

  show(scene: ZoneScene): void {
    this.scene = scene;
    if (this.map.getStyle()) this.draw();
  }

  // The zone at a place of the canvas.
  at(x: number, y: number): string | null {
    if (!this.map.getLayer(ZONES)) return null;
    const zone: unknown = this.map.queryRenderedFeatures([x, y], { layers: [ZONES] })[0]?.properties["zone"];
    return typeof zone === "string" ? zone : null;
  }

  private draw(): void {
    const { map } = this;
    const { palette, opacity, shown } = this.scene!;
    if (!shown && !map.getLayer(TRIPS)) return;
    if (!map.getLayer(TRIPS)) this.add();
    map.updateImage(HATCH, stripes(palette));
    (map.getSource(ZONES) as GeoJSONSource).setData(this.shapes());
    (map.getSource(TRIPS) as GeoJSONSource).setData(this.lines());
    map.setPaintProperty(ZONES, "fill-opacity", opacity);
    map.setPaintProperty(`${ZONES}-edge`, "line-color", css(palette.edge));
    map.setPaintProperty(`${ZONES}-chosen`, "line-color", css(palette.mark));
    map.setPaintProperty(TRIPS, "line-color", css(palette.arrow));
  }

  private add(): void {
    const { map } = this;
    const label = map.getStyle().layers.find(({ type }) => type === "symbol")?.id;
    const source: GeoJSONSourceSpecification = { type: "geojson", data: collection([]) };
    if (!map.hasImage(HATCH)) map.addImage(HATCH, stripes(this.scene!.palette), { pixelRatio: 2 });
    map.addSource(ZONES, source);
    map.addSource(TRIPS, source);
    map.addLayer({ id: ZONES, type: "fill", source: ZONES, paint: { "fill-color": ["get", "colour"] } }, label);
    map.addLayer({ id: `${ZONES}-hatch`, type: "fill", source: ZONES, filter: ["get", "unclear"], paint: { "fill-pattern": HATCH } }, label);
    map.addLayer({ id: `${ZONES}-edge`, type: "line", source: ZONES, paint: { "line-width": 1 } }, label);
    map.addLayer({ id: `${ZONES}-chosen`, type: "line", source: ZONES, filter: ["get", "chosen"], paint: { "line-width": 3 } }, label);
    const line = { "line-cap": "round" } as const;
    map.addLayer({ id: TRIPS, type: "line", source: TRIPS, layout: line, paint: { "line-width": ["get", "width"], "line-opacity": 0.8 } }, label);
  }

  private shapes(): GeoJSON.FeatureCollection {
    const { zones, shown, chosen, most, palette } = this.scene!;
    return collection(
      (shown ? zones : []).map(({ zone, n, unclear, shape }) => ({
        type: "Feature",
        properties: { zone, unclear, chosen: zone === chosen, colour: shade(palette.ramp, Math.sqrt(Math.min(n / most, 1))) },
        geometry: { ...shape, coordinates: this.onEarth(shape.coordinates) } as GeoJSON.Polygon,
      })),
    );
  }

  // Trips that may be chance have no line.
  private lines(): GeoJSON.FeatureCollection {
    const { zones, trips, chosen, shown } = this.scene!;
    const middles = new Map(zones.map(({ zone, shape }) => [zone, middleOf(shape)]));
    const own = trips.filter(({ origin, destination, unclear }) => origin === chosen && destination !== chosen && !unclear && middles.has(destination));
    const most = Math.max(1, ...own.map(({ n }) => n));
    const from = middles.get(chosen ?? "");
    return collection(
      (shown && from ? own : []).map(({ destination, n }) => ({
        type: "Feature",
        properties: { width: 1 + (WIDEST - 1) * Math.sqrt(n / most) },
        geometry: { type: "LineString", coordinates: this.onEarth([from!, middles.get(destination)!]) as GeoJSON.Position[] },
      })),
    );
  }

  private onEarth(places: Nested): Nested {
    if (typeof places[0] === "number") return this.projection.toLonLat(places[0], places[1] as number);
    return (places as Nested[]).map((part) => this.onEarth(part));
  }
}

type Nested = number[] | Nested[];

const collection = (features: GeoJSON.Feature[]): GeoJSON.FeatureCollection => ({ type: "FeatureCollection", features });

const css = ([red, green, blue, alpha]: Palette["edge"]) => `rgba(${[red, green, blue].map((part) => Math.round(part * 255)).join()},${alpha})`;

// The colour at a share of the ramp.
export function shade(ramp: readonly string[], share: number): string {
  const place = share * (ramp.length - 1);
  const stop = Math.min(Math.floor(place), ramp.length - 2);
  const [low, high] = [rgb(ramp[stop]!), rgb(ramp[stop + 1]!)];
  return `rgb(${low.map((part, i) => Math.round(255 * (part + (high[i]! - part) * (place - stop)))).join()})`;
}

// The middle of the largest outline's box: a place to draw lines from.
export function middleOf(shape: ZoneCount["shape"]): [number, number] {
  const rings = shape.type === "Polygon" ? [shape.coordinates[0]!] : shape.coordinates.map(([ring]) => ring!);
  const ends = rings.map((ring) => [0, 1].map((axis) => [Math.min(...ring.map((at) => at[axis]!)), Math.max(...ring.map((at) => at[axis]!))] as const));
  const size = ([x, y]: (readonly [number, number])[]) => (x![1] - x![0]) * (y![1] - y![0]);
  const [x, y] = ends.reduce((one, other) => (size(other) > size(one) ? other : one));
  return [(x![0] + x![1]) / 2, (y![0] + y![1]) / 2];
}

function stripes({ hatch }: Palette): StyleImageInterface {
  const data = new Uint8Array(4 * STRIPE * STRIPE);
  const [red, green, blue, alpha] = hatch.map((part) => Math.round(255 * part));
  for (let place = 0; place < STRIPE * STRIPE; place++) {
    const across = ((place % STRIPE) + Math.floor(place / STRIPE)) % STRIPE;
    if (across < 2) data.set([red!, green!, blue!, alpha!], 4 * place);
  }
  return { width: STRIPE, height: STRIPE, data };
}
