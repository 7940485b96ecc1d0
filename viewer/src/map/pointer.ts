// Mouse, touch and pen on the map: a cell under the pointer, a click on a cell, a drag that draws an area.

import type { Box } from "../api.ts";
import type { Store } from "../store.ts";
import type { CityMap } from "./city.ts";

const SMALLEST = 4; // CSS pixels; a shorter drag was a click

const within = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

// The box between two places, cut at the campaign's box.
export function boxBetween([ax, ay]: readonly [number, number], [bx, by]: readonly [number, number], [x0, y0, x1, y1]: Box): Box {
  const [left, right] = [Math.min(ax, bx), Math.max(ax, bx)].map((x) => within(x, x0, x1));
  const [bottom, top] = [Math.min(ay, by), Math.max(ay, by)].map((y) => within(y, y0, y1));
  return [left!, bottom!, right!, top!];
}

export function followPointer(city: CityMap, store: Store): void {
  const { map, projection } = city;
  const side = city.scene.side;
  const surface = map.getCanvasContainer();
  let start: { pointer: number; x: number; y: number } | null = null;
  let drew = false; // the click that ends a drag is not a click

  const at = (event: PointerEvent) => {
    const { left, top } = surface.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const boxTo = (x: number, y: number) => boxBetween(city.dataAt(start!.x, start!.y), city.dataAt(x, y), projection.box);
  const rectangle = ([x0, y0, x1, y1]: Box) => [...projection.toSheet(x0, y0), ...projection.toSheet(x1, y1)] as const;

  const stop = () => {
    if (!start) return;
    if (surface.hasPointerCapture(start.pointer)) surface.releasePointerCapture(start.pointer);
    start = null;
    map.dragPan.enable();
  };

  const begin = (event: PointerEvent) => {
    drew = false;
    if (event.button !== 0 || !event.isPrimary || !(store.now.drawing || event.shiftKey)) return;
    start = { pointer: event.pointerId, ...at(event) };
    surface.setPointerCapture(event.pointerId);
    map.dragPan.disable();
    store.set({ drawing: true });
  };

  const move = (event: PointerEvent) => {
    const { x, y } = at(event);
    if (start?.pointer === event.pointerId) city.change({ area: rectangle(boxTo(x, y)), hovered: null });
    else if (event.pointerType === "mouse" && !event.buttons) {
      const zoned = store.now.layers.zones;
      const cell = zoned ? null : projection.cellAt(...city.dataAt(x, y), side);
      const zone = zoned ? city.zones.at(x, y) : null;
      const hovered = cell === null ? null : rectangle(projection.cellBox(cell, side));
      store.set({ hover: cell === null && zone === null ? null : { cell, zone, real: city.isReal, x: event.clientX, y: event.clientY } });
      if (String(hovered) !== String(city.scene.hovered)) city.change({ hovered });
    }
  };

  const end = (event: PointerEvent) => {
    if (start?.pointer !== event.pointerId) return;
    const { x, y } = at(event);
    const large = Math.abs(x - start.x) >= SMALLEST && Math.abs(y - start.y) >= SMALLEST;
    const box = boxTo(x, y);
    drew = true;
    stop();
    if (large && box[0] < box[2] && box[1] < box[3]) store.set({ box, drawing: false });
  };

  surface.addEventListener("pointerdown", begin, { capture: true });
  surface.addEventListener("pointermove", move);
  surface.addEventListener("pointerup", end);
  surface.addEventListener("pointercancel", () => store.set({ drawing: false }));
  surface.addEventListener("pointerleave", () => {
    city.change({ hovered: null });
    store.set({ hover: null });
  });
  // Touch would otherwise also pan and pinch.
  surface.addEventListener("touchstart", (event) => start && event.stopImmediatePropagation(), { capture: true });

  map.on("click", ({ lngLat, point }) => {
    if (drew || store.now.drawing) return;
    if (store.now.layers.zones) {
      const zone = city.zones.at(point.x, point.y);
      return store.set({ zone: zone === store.now.zone ? null : zone });
    }
    const cell = projection.cellAt(...projection.fromLonLat(lngLat.lng, lngLat.lat), side);
    store.set({ cell: cell === store.now.cell ? null : cell });
  });

  store.watch(["cell", "layers"], ({ cell, layers }) => city.change({ selected: cell === null || layers.zones ? null : rectangle(projection.cellBox(cell, side)) }));
  store.watch(["box", "drawing"], ({ box, drawing }) => {
    map.getContainer().classList.toggle("drawing", drawing);
    if (!drawing) stop();
    if (!start) city.change({ area: box && rectangle(box) });
  });
}
