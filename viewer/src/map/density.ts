// Cells, coloured by how many are in them, fading from one frame to the next; hatched where that may be chance.

import { type Frame, isUnclear } from "../frame.ts";
import { RAMP_STOPS, rgb } from "./palette.ts";
import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import type { Scene } from "./scene.ts";

const VERTEX = `
in vec4 a_cell;
in vec3 a_count; // at from, at to, and 1 if it may be chance
uniform float u_progress, u_max, u_opacity;
uniform vec3 u_ramp[${RAMP_STOPS}];
out vec2 v_at;
flat out vec2 v_half;
flat out vec4 v_color;
flat out float v_hatch;
void main() {
  float n = mix(a_count.x, a_count.y, u_progress);
  v_hatch = a_count.z;
  if (n <= 0.0 && v_hatch < 0.5) { gl_Position = vec4(2.0, 2.0, 0.0, 1.0); return; }
  vec2 low = pixel(a_cell.xy), high = pixel(a_cell.zw);
  vec2 size = high - low;
  float gap = clamp(min(size.x, size.y) * 0.02, 0.0, 0.6);
  v_half = 0.5 * size - gap;
  v_at = corner() * (v_half + 1.0);
  float shade = sqrt(min(n / u_max, 1.0)) * ${RAMP_STOPS - 1}.0;
  int stop = min(int(shade), ${RAMP_STOPS - 2});
  vec3 ink = mix(u_ramp[stop], u_ramp[stop + 1], shade - float(stop));
  v_color = vec4(ink, 1.0) * min(n, 1.0) * u_opacity;
  gl_Position = place(0.5 * (low + high) + v_at);
}`;

const FRAGMENT = `
in vec2 v_at;
flat in vec2 v_half;
flat in vec4 v_color;
flat in float v_hatch;
uniform vec4 u_hatch;
void main() {
  float radius = min(0.12 * min(v_half.x, v_half.y), 4.0);
  float gap = clamp(0.5 * min(v_half.x, v_half.y), 4.0, 8.0); // CSS pixels from one stripe to the next
  float across = mod((v_at.x + v_at.y) * 0.7071, gap);
  float stripe = v_hatch * cover(abs(across - 0.5 * gap) - 0.5);
  vec4 ink = u_hatch * stripe + v_color * (1.0 - u_hatch.a * stripe);
  color = ink * cover(length(max(abs(v_at) - v_half + radius, 0.0)) - radius);
}`;

const WIDTH = 7; // floats a cell has

export class Density {
  private readonly program: Program;
  private readonly cells: Quads;
  private readonly values: Float32Array;
  private pair = -1;

  constructor(gl: GL, { projection, side }: Scene) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_cell", "a_count"]);
    this.cells = new Quads(gl, [4, 3]);
    this.values = new Float32Array(side * side * WIDTH);
    for (let cell = 0; cell < side * side; cell++) {
      const [x0, y0, x1, y1] = projection.cellBox(cell, side);
      this.values.set([...projection.toSheet(x0, y0), ...projection.toSheet(x1, y1)], cell * WIDTH);
    }
  }

  draw(scene: Scene, view: View): void {
    if (!scene.from || !scene.to || !scene.show.density || scene.show.zones) return;
    if (this.pair !== scene.pair) this.fill(scene.from, scene.to);
    this.pair = scene.pair;
    this.program.use(view, { u_progress: scene.progress, u_max: scene.maxCount, u_opacity: scene.opacity, u_hatch: premultiplied(scene.palette.hatch) });
    this.program.setMany("u_ramp", scene.palette.ramp.map(rgb));
    this.cells.draw();
  }

  private fill(from: Frame, to: Frame): void {
    for (let cell = 0; cell < to.cells.n.length; cell++) {
      this.values.set([from.cells.n[cell]!, to.cells.n[cell]!, isUnclear(to, cell) ? 1 : 0], cell * WIDTH + 4);
    }
    this.cells.fill(this.values);
  }
}
