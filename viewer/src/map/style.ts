// What MapLibre itself draws: the ground, or the configured base map, and roads.

import type { Map, StyleSpecification } from "maplibre-gl";
import type { Projection } from "../projection.ts";
import type { Palette } from "./palette.ts";

export const plainStyle = (palette: Palette): StyleSpecification => ({
  version: 8,
  sources: {},
  layers: [{ id: "ground", type: "background", paint: { "background-color": palette.ground } }],
});

type Line = GeoJSON.Position[];

export function projectRoads(roads: GeoJSON.FeatureCollection, projection: Projection): GeoJSON.Feature {
  const lines: Line[] = [];
  const add = (line: Line) => lines.push(line.map(([x, y]) => projection.toLonLat(x!, y!)));
  for (const { geometry } of roads.features) {
    if (geometry?.type === "LineString") add(geometry.coordinates);
    if (geometry?.type === "MultiLineString") geometry.coordinates.forEach(add);
  }
  return { type: "Feature", properties: {}, geometry: { type: "MultiLineString", coordinates: lines } };
}

export function addRoads(map: Map, roads: GeoJSON.Feature, palette: Palette): void {
  map.addSource("roads", { type: "geojson", data: roads, tolerance: 0.3 });
  map.addLayer({
    id: "roads",
    type: "line",
    source: "roads",
    layout: { "line-join": "round", "line-cap": "round" },
    paint: { "line-color": palette.road, "line-width": ["interpolate", ["exponential", 1.6], ["zoom"], 10, 0.6, 18, 5] },
  });
}
