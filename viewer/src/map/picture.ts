// The two layers that MapLibre draws for us: cells under roads and names, everything else above.

import type { CustomLayerInterface, Map } from "maplibre-gl";
import { lonLatToMercator, type Projection } from "../projection.ts";
import { Arrows } from "./arrows.ts";
import { Density } from "./density.ts";
import type { GL, View } from "./gl.ts";
import { Grid } from "./grid.ts";
import { Marks } from "./marks.ts";
import type { Scene } from "./scene.ts";
import { Travellers } from "./travellers.ts";

const TILE = 512; // CSS pixels the world is wide at zoom 0
const FPS_MS = 3000;

export function viewOf(map: Map, projection: Projection, gl: GL): View {
  const { lng, lat } = map.getCenter();
  const [x, y] = lonLatToMercator(lng, lat);
  const size = TILE * 2 ** map.getZoom();
  const ratio = map.getPixelRatio();
  return {
    scale: [projection.width * size, projection.height * size],
    shift: [(projection.left - x) * size, (y - projection.bottom) * size],
    half: [gl.drawingBufferWidth / ratio / 2, gl.drawingBufferHeight / ratio / 2],
    ratio,
  };
}

interface Part {
  draw(scene: Scene, view: View): void;
}

class Layer implements CustomLayerInterface {
  readonly type = "custom";
  private parts: Part[] = [];
  private map: Map | null = null;

  constructor(
    readonly id: string,
    private readonly scene: Scene,
    private readonly build: (gl: GL) => Part[],
    private readonly drawn: () => void,
  ) {}

  onAdd(map: Map, gl: WebGLRenderingContext | WebGL2RenderingContext): void {
    this.map = map;
    this.parts = this.build(gl as GL);
    map.on("webglcontextrestored", () => (this.parts = this.build(gl as GL)));
  }

  render(gl: WebGLRenderingContext | WebGL2RenderingContext): void {
    const view = viewOf(this.map!, this.scene.projection, gl as GL);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.STENCIL_TEST);
    for (const part of this.parts) part.draw(this.scene, view);
    this.drawn();
  }
}

export class Picture {
  readonly ground: CustomLayerInterface;
  readonly above: CustomLayerInterface;
  private travellers: Travellers | null = null;
  private times: number[] = []; // when the last pictures were drawn

  constructor(readonly scene: Scene) {
    this.ground = new Layer("cells", scene, (gl) => [new Density(gl, scene), new Grid(gl, scene)], () => undefined);
    this.above = new Layer(
      "travellers",
      scene,
      (gl) => [new Arrows(gl, scene), (this.travellers = new Travellers(gl)), new Marks(gl)],
      () => this.tick(),
    );
  }

  get travellersDrawn(): number {
    return this.scene.show.travellers ? (this.travellers?.count ?? 0) : 0;
  }

  // Pictures a second, over the last few seconds.
  get fps(): number {
    const since = performance.now() - FPS_MS;
    return (this.times.filter((time) => time > since).length * 1000) / FPS_MS;
  }

  private tick(): void {
    const now = performance.now();
    this.times = [...this.times.filter((time) => time > now - FPS_MS), now];
  }
}
