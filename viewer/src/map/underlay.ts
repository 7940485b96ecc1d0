// Cells as a layer of the base map, below its first label, where the base map has labels. It costs a
// picture of the whole base map for every picture of the cells, so without labels they lie above it.

import type { CustomLayerInterface, Map } from "maplibre-gl";
import type { GL } from "./gl.ts";
import { cellParts, type Overlay, type Part, viewOf } from "./overlay.ts";
import type { Scene } from "./scene.ts";

const ID = "retrasyn-cells";

export function keepBelowLabels(map: Map, scene: Scene, overlay: Overlay): void {
  map.on("styledata", () => {
    const label = map.getStyle()?.layers.find(({ type }) => type === "symbol")?.id;
    if (label && !map.getLayer(ID)) map.addLayer(cellLayer(map, scene), label);
    overlay.underLabels = label !== undefined;
    overlay.change();
  });
}

function cellLayer(map: Map, scene: Scene): CustomLayerInterface {
  let parts: Part[] = [];
  return {
    id: ID,
    type: "custom",
    onAdd: (_map, gl) => void (parts = cellParts(gl as GL, scene)),
    render: () => parts.forEach((part) => part.draw(scene, viewOf(map, scene))),
  };
}
