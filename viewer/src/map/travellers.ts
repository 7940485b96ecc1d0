// Synthetic travellers: soft dots with a short tail, moved between two frames by the graphics card.

import type { Projection } from "../projection.ts";
import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import { type Merged, mergeTravellers, WIDTH } from "./merge.ts";
import type { Scene } from "./scene.ts";

const VERTEX = `
in vec2 a_before;
in vec2 a_from;
in vec2 a_to;
in vec2 a_seen;
uniform float u_progress, u_radius, u_alpha;
const float TAIL = 0.6;
out vec2 v_at;
flat out float v_length;
flat out float v_alpha;
void main() {
  v_alpha = mix(a_seen.x, a_seen.y, u_progress) * u_alpha;
  float past = u_progress - TAIL;
  vec2 head = pixel(mix(a_from, a_to, u_progress));
  vec2 tail = pixel(past < 0.0 ? mix(a_before, a_from, 1.0 + past) : mix(a_from, a_to, past));
  vec2 way = head - tail;
  float gone = length(way);
  v_length = min(gone, 10.0 * u_radius);
  vec2 along = gone > 0.01 ? way / gone : vec2(1.0, 0.0);
  float reach = u_radius + 1.2;
  v_at = vec2(gl_VertexID & 1, 0.0) * (v_length + 2.0 * reach) - vec2(v_length + reach, 0.0);
  v_at.y = corner().y * reach;
  gl_Position = place(head + along * v_at.x + vec2(-along.y, along.x) * v_at.y);
}`;

const FRAGMENT = `
uniform vec4 u_color, u_halo;
uniform float u_radius;
in vec2 v_at;
flat in float v_length;
flat in float v_alpha;
void main() {
  float dot = length(v_at) - u_radius;
  float back = clamp(1.0 + v_at.x / max(v_length, 0.01), 0.0, 1.0);
  float tail = v_at.x < 0.0 ? cover(abs(v_at.y) - u_radius * 0.8 * back) * back * back * 0.6 : 0.0;
  float body = max(cover(dot), tail);
  float ring = clamp(1.0 - dot / 1.2, 0.0, 1.0) * (1.0 - body);
  color = (u_color * body + u_halo * ring) * v_alpha;
}`;

const UNDER_ARROWS = 0.5; // so faint that arrows can be read above them

function place(merged: Merged, projection: Projection): Float32Array {
  const values = merged.values.slice();
  for (let start = 0; start < values.length; start += WIDTH) {
    for (let at = start; at < start + 6; at += 2) {
      values.set(projection.shareToSheet(values[at]!, values[at + 1]!), at);
    }
  }
  return values;
}

export class Travellers {
  private readonly program: Program;
  private readonly dots: Quads;
  private merged: Merged | null = null;
  private reached = -1; // the timestamp the last merge led to
  private pair = -1;

  constructor(gl: GL) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_before", "a_from", "a_to", "a_seen"]);
    this.dots = new Quads(gl, [2, 2, 2, 2]);
  }

  get count(): number {
    return this.dots.count;
  }

  draw(scene: Scene, view: View): void {
    const { from, to, palette } = scene;
    if (!from || !to || !scene.show.travellers) return;
    if (this.pair !== scene.pair) {
      const earlier = this.reached === from.t && from !== to ? this.merged : null;
      this.merged = mergeTravellers(from, to, earlier);
      this.reached = to.t;
      this.dots.fill(place(this.merged, scene.projection));
    }
    this.pair = scene.pair;
    // Larger where there is room, small where the whole city is on a small screen.
    const room = Math.min(...view.scale);
    this.program.use(view, {
      u_progress: scene.progress,
      u_radius: Math.min(Math.max(room / 460, 1.15), 5),
      u_alpha: scene.show.flows ? UNDER_ARROWS : 1,
      u_color: premultiplied(palette.traveller),
      u_halo: premultiplied(palette.halo),
    });
    this.dots.draw();
  }
}
