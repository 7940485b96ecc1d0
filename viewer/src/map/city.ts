// A map of the campaign's box: MapLibre for the camera and the base map, an overlay for the data.

import type { Map as MapLibreMap, StyleSpecification } from "maplibre-gl";
import type { MapInfo } from "../api.ts";
import type { Frame } from "../frame.ts";
import type { Projection } from "../projection.ts";
import { Map, setWorkerCount, setWorkerUrl } from "./library.ts";
import { Overlay } from "./overlay.ts";
import { DARK, LIGHT, type Palette } from "./palette.ts";
import type { Scene } from "./scene.ts";
import { plainStyle } from "./style.ts";
import { keepBelowLabels } from "./underlay.ts";
import { ZoneLayers } from "./zones.ts";

const OWN_STYLE = "/v1/map/style.json";
const MARGIN = 14; // CSS pixels around the box
const CARDS = { left: 176, right: 66, top: 16, bottom: 16 }; // what lies on a wide map at its sides
const CLOSER = 7; // zoom levels beyond the whole box

setWorkerUrl("static/map/worker.js");
setWorkerCount(1);

export class CityMap {
  readonly map: MapLibreMap;
  readonly overlay: Overlay;
  readonly scene: Scene;
  readonly zones: ZoneLayers;
  private fitted = true; // nobody has moved the camera since it was fitted

  constructor(
    container: HTMLElement,
    readonly projection: Projection,
    side: number,
    private readonly info: MapInfo,
    dark: boolean,
    readonly isReal: boolean,
  ) {
    this.scene = {
      projection,
      side,
      palette: dark ? DARK : LIGHT,
      opacity: 1,
      from: null,
      to: null,
      pair: 0,
      progress: 1,
      maxCount: 1,
      maxFlow: 1,
      show: { density: true, flows: true, travellers: true, roads: true, zones: false },
      streets: null,
      hovered: null,
      selected: null,
      area: null,
    };
    this.map = new Map({
      container,
      style: this.style(),
      // The worker wants whole addresses; what is the server's own lies below the page.
      transformRequest: (url) => ({ url: new URL(url.replace(/^\/v1\//, "v1/"), location.href).href }),
      bounds: this.bounds,
      fitBoundsOptions: { padding: this.margin(container) },
      attributionControl: false,
      keyboard: false, // see keyboard.ts
      boxZoom: false,
      dragRotate: false,
      pitchWithRotate: false,
      touchPitch: false,
      maxPitch: 0,
      renderWorldCopies: false,
      fadeDuration: 0,
      pixelRatio: Math.min(devicePixelRatio, 2),
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.setMinZoom(this.map.getZoom() - 2);
    this.map.setMaxZoom(Math.min(this.map.getZoom() + CLOSER, 22));
    this.overlay = new Overlay(this.map, this.scene);
    this.zones = new ZoneLayers(this.map, projection);
    if (info.style) keepBelowLabels(this.map, this.scene, this.overlay);
    this.map.on("movestart", ({ originalEvent }: { originalEvent?: unknown }) => {
      if (originalEvent) this.fitted = false;
    });
    this.map.on("resize", () => this.fitted && this.fit(false));
  }

  show(from: Frame, to: Frame): void {
    Object.assign(this.scene, { from, to });
    this.scene.pair += 1;
    this.overlay.change();
  }

  change(change: Partial<Scene>): void {
    Object.assign(this.scene, change);
    this.overlay.change();
  }

  paint(palette: Palette): void {
    if (palette === this.scene.palette) return;
    this.change({ palette });
    this.map.setStyle(this.style());
  }

  // The server's own style has two themes; any other is as it is.
  private style(): StyleSpecification | string {
    const { palette } = this.scene;
    const { style } = this.info;
    if (style === null) return plainStyle(palette);
    return style === OWN_STYLE ? `${style}?theme=${palette === DARK ? "dark" : "light"}` : style;
  }

  zoom(by: 1 | -1): void {
    this.fitted = false;
    if (by > 0) this.map.zoomIn();
    else this.map.zoomOut();
  }

  pan(x: number, y: number): void {
    this.fitted = false;
    this.map.panBy([x, y]);
  }

  fit(animated = true): void {
    this.fitted = true;
    this.map.fitBounds(this.bounds, { padding: this.margin(this.map.getContainer()), animate: animated, duration: 500 });
  }

  // Data coordinates of a place on the canvas.
  dataAt(x: number, y: number): [number, number] {
    const { lng, lat } = this.map.unproject([x, y]);
    return this.projection.fromLonLat(lng, lat);
  }

  private get bounds(): [[number, number], [number, number]] {
    const [x0, y0, x1, y1] = this.projection.box;
    return [this.projection.toLonLat(x0, y0), this.projection.toLonLat(x1, y1)];
  }

  // Beside the cards, where that does not make the box smaller.
  private margin({ clientWidth, clientHeight }: HTMLElement): number | typeof CARDS {
    const wide = (clientWidth - CARDS.left - CARDS.right) / this.projection.width;
    const high = (clientHeight - CARDS.top - CARDS.bottom) / this.projection.height;
    return wide >= high ? CARDS : Math.min(MARGIN, 0.03 * clientWidth);
  }
}
