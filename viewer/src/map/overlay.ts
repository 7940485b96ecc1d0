// The data, on a transparent canvas of its own above MapLibre's.
//
// While history plays only this canvas is drawn, never the base map under it: in software rendering
// that is most of the time a picture takes. A moving camera draws both, in the same frame.

import type { Map } from "maplibre-gl";
import { lonLatToMercator } from "../projection.ts";
import { Arrows } from "./arrows.ts";
import { Density } from "./density.ts";
import type { GL, View } from "./gl.ts";
import { Grid } from "./grid.ts";
import { Marks } from "./marks.ts";
import { Roads } from "./roads.ts";
import type { Scene } from "./scene.ts";
import { Travellers } from "./travellers.ts";

const TILE = 512; // CSS pixels the world is wide at zoom 0
const FPS_MS = 3000;

export interface Part {
  draw(scene: Scene, view: View): void;
}

export class Overlay {
  private readonly canvas = document.createElement("canvas");
  private readonly gl: GL;
  private cells: Part[] = [];
  private parts: Part[] = [];
  private travellers: Travellers | null = null;
  private stale = false;
  private times: number[] = []; // when the last pictures were drawn
  underLabels = false; // cells are drawn among the layers of the base map

  constructor(
    private readonly map: Map,
    private readonly scene: Scene,
  ) {
    const { canvas } = this;
    canvas.setAttribute("aria-hidden", "true");
    Object.assign(canvas.style, { position: "absolute", left: "0", top: "0", width: "100%", height: "100%", pointerEvents: "none" });
    map.getCanvas().after(canvas);
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false, stencil: false });
    if (!gl) throw new Error("WebGL 2 is needed to draw the map");
    this.gl = gl;
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => this.build());
    map.on("resize", () => this.resize());
    map.on("render", () => this.draw());
    this.resize();
    this.build();
  }

  // To be drawn again, with the browser's next picture.
  change(): void {
    if (this.underLabels) return this.map.triggerRepaint(); // after which this is drawn, too
    if (this.stale) return;
    this.stale = true;
    requestAnimationFrame(() => this.stale && this.draw());
  }

  get travellersDrawn(): number {
    return this.scene.show.travellers ? (this.travellers?.count ?? 0) : 0;
  }

  // Pictures a second, over the last few seconds.
  get fps(): number {
    const since = performance.now() - FPS_MS;
    return (this.times.filter((time) => time > since).length * 1000) / FPS_MS;
  }

  private build(): void {
    const { gl, scene } = this;
    this.travellers = new Travellers(gl);
    this.cells = cellParts(gl, scene);
    this.parts = [new Roads(gl), this.travellers, new Arrows(gl, scene), new Marks(gl)];
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.change();
  }

  private resize(): void {
    const { width, height } = this.map.getCanvas();
    if (this.canvas.width === width && this.canvas.height === height) return;
    Object.assign(this.canvas, { width, height });
    this.gl.viewport(0, 0, width, height);
    this.change();
  }

  private draw(): void {
    const { gl } = this;
    this.stale = false;
    gl.clear(gl.COLOR_BUFFER_BIT);
    const view = viewOf(this.map, this.scene);
    for (const part of [...(this.underLabels ? [] : this.cells), ...this.parts]) part.draw(this.scene, view);
    const now = performance.now();
    this.times = [...this.times.filter((time) => time > now - FPS_MS), now];
  }
}

export const cellParts = (gl: GL, scene: Scene): Part[] => [new Density(gl, scene), new Grid(gl, scene)];

export function viewOf(map: Map, { projection }: Scene): View {
  const canvas = map.getCanvas();
  const { lng, lat } = map.getCenter();
  const [x, y] = lonLatToMercator(lng, lat);
  const size = TILE * 2 ** map.getZoom();
  const ratio = map.getPixelRatio();
  return {
    scale: [projection.width * size, projection.height * size],
    shift: [(projection.left - x) * size, (y - projection.bottom) * size],
    half: [canvas.width / ratio / 2, canvas.height / ratio / 2],
    ratio,
  };
}
