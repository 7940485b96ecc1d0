// Names of cells, where the base map has places with names: that of the place nearest to the middle.

import type { Map as MapLibreMap } from "maplibre-gl";
import type { Projection } from "../projection.ts";

const LAYERS = ["place", "places", "place_label", "place_labels"]; // as the usual kinds of tiles call them

export interface Place {
  name: string;
  lon: number;
  lat: number;
}

// Of all tiles that are at hand.
export function placesOn(map: MapLibreMap, language: string): Place[] {
  const sources = Object.entries(map.getStyle()?.sources ?? {});
  const features = sources.flatMap(([id, { type }]) => {
    if (type === "geojson") return map.querySourceFeatures(id);
    return type === "vector" ? LAYERS.flatMap((sourceLayer) => map.querySourceFeatures(id, { sourceLayer })) : [];
  });
  return features.flatMap(({ geometry, properties }) => {
    const name: unknown = properties[`name:${language}`] ?? properties["name"];
    if (geometry.type !== "Point" || typeof name !== "string") return [];
    return [{ name, lon: geometry.coordinates[0]!, lat: geometry.coordinates[1]! }];
  });
}

export function namesOf(places: readonly Place[], projection: Projection, side: number): Map<number, string> {
  const nearest = new Map<number, { name: string; far: number }>();
  for (const { name, lon, lat } of places) {
    const [x, y] = projection.fromLonLat(lon, lat);
    const cell = projection.cellAt(x, y, side);
    if (cell === null) continue;
    const [x0, y0, x1, y1] = projection.cellBox(cell, side);
    const far = Math.hypot((x - x0) / (x1 - x0) - 0.5, (y - y0) / (y1 - y0) - 0.5);
    if (far < (nearest.get(cell)?.far ?? Infinity)) nearest.set(cell, { name, far });
  }
  return new Map([...nearest].map(([cell, { name }]) => [cell, name]));
}
