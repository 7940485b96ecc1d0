// What MapLibre itself draws when no base map is configured: the ground.

import type { StyleSpecification } from "maplibre-gl";
import type { Palette } from "./palette.ts";

export const plainStyle = (palette: Palette): StyleSpecification => ({
  version: 8,
  sources: {},
  layers: [{ id: "ground", type: "background", paint: { "background-color": palette.ground } }],
});
