// The map by keyboard, while it has the focus; controls.ts names the keys for the help text.

import type { Box } from "../api.ts";
import type { Store } from "../store.ts";
import type { CityMap } from "./city.ts";

const ARROWS: Record<string, readonly [columns: number, rows: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};
const PAN = 80; // CSS pixels

export function neighbour(cell: number, [columns, rows]: readonly [number, number], side: number): number {
  const inside = (value: number) => Math.min(Math.max(value, 0), side - 1);
  return inside(Math.floor(cell / side) + rows) * side + inside((cell % side) + columns);
}

export function followKeys(city: CityMap, store: Store): void {
  const { map, projection } = city;
  const side = city.scene.side;
  let first: number | null = null; // the cells in the corners of a box that is drawn by keyboard
  let last = 0;

  const middle = () => {
    const { lng, lat } = map.getCenter();
    return projection.cellAt(...projection.fromLonLat(lng, lat), side) ?? Math.floor((side * side + side) / 2);
  };

  const draft = (): Box => {
    const [a, b] = [projection.cellBox(first!, side), projection.cellBox(last, side)];
    return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])];
  };

  const arrow = (way: readonly [number, number], shift: boolean) => {
    if (store.now.drawing) {
      if (first === null) first = last = store.now.cell ?? middle();
      else last = neighbour(last, way, side);
      const [x0, y0, x1, y1] = draft();
      city.change({ area: [...projection.toSheet(x0, y0), ...projection.toSheet(x1, y1)] });
    } else if (shift || store.now.cell === null) city.pan(way[0] * PAN, -way[1] * PAN);
    else store.set({ cell: neighbour(store.now.cell, way, side) });
  };

  const enter = () => {
    if (!store.now.drawing) store.set({ cell: store.now.cell ?? middle() });
    else if (first !== null) store.set({ box: draft(), drawing: false });
  };

  const leave = () => store.set(store.now.drawing ? { drawing: false } : { cell: null });

  const keys: Record<string, () => void> = {
    Enter: enter,
    " ": enter,
    Escape: leave,
    "+": () => city.zoom(1),
    "=": () => city.zoom(1),
    "-": () => city.zoom(-1),
    "0": () => city.fit(),
  };

  map.getCanvas().addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ARROWS[event.key];
    const call = way ? () => arrow(way, event.shiftKey) : keys[event.key];
    if (!call) return;
    event.preventDefault();
    event.stopPropagation();
    call();
  });
  // Escape stops drawing from anywhere on the page.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && store.now.drawing) store.set({ drawing: false });
  });
  store.watch(["drawing"], () => (first = null));
}
