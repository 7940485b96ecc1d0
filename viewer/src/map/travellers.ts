// Synthetic travellers: soft dots with a fading trail, driven along their legs by the graphics card.

import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import { Legs } from "./legs.ts";
import type { Scene } from "./scene.ts";
import type { Streets } from "./streets.ts";

// Of a piece of a leg, either the part that is in the trail or, if the traveller is on it, the dot.
const VERTEX = `
in vec4 a_piece;
in vec4 a_when;
uniform float u_progress, u_trail, u_radius, u_alpha, u_dots;
out vec2 v_at;
out float v_fresh;
flat out float v_alpha;
vec2 at(float time) { return pixel(mix(a_piece.xy, a_piece.zw, (time - a_when.x) / (a_when.y - a_when.x))); }
void main() {
  v_alpha = mix(a_when.z, a_when.w, u_progress) * u_alpha;
  v_fresh = 1.0;
  gl_Position = vec4(2.0, 2.0, 0.0, 1.0);
  float begins = max(a_when.x, u_progress - u_trail), ends = min(a_when.y, u_progress);
  if (u_dots > 0.5) {
    if (u_progress < a_when.x || (u_progress >= a_when.y && a_when.y < 0.9999)) return;
    v_at = corner() * (u_radius + 1.2);
    gl_Position = place(at(u_progress) + v_at);
  } else if (begins < ends) {
    vec2 tail = at(begins), head = at(ends), way = head - tail;
    float gone = length(way);
    vec2 along = gone > 0.01 ? way / gone : vec2(1.0, 0.0);
    bool isHead = corner().x > 0.0;
    v_fresh = 1.0 - (u_progress - (isHead ? ends : begins)) / u_trail;
    v_at = vec2(0.0, corner().y * (u_radius + 1.2));
    gl_Position = place((isHead ? head : tail) + vec2(-along.y, along.x) * v_at.y);
  }
}`;

const FRAGMENT = `
uniform vec4 u_color, u_halo;
uniform float u_radius, u_dots;
in vec2 v_at;
in float v_fresh;
flat in float v_alpha;
void main() {
  float far = length(v_at) - u_radius;
  float ring = clamp(1.0 - far / 1.2, 0.0, 1.0);
  float trail = cover(abs(v_at.y) - u_radius * 0.75 * v_fresh) * v_fresh * v_fresh * 0.7;
  float body = u_dots > 0.5 ? cover(far) : trail;
  color = (u_color * body + u_halo * (u_dots > 0.5 ? ring * (1.0 - body) : 0.0)) * v_alpha;
}`;

const UNDER_ARROWS = 0.5; // so faint that arrows can be read above them
const TRAIL = 3; // timestamps
const TRAIL_ON_STREETS = 6; // a street shows where a trail belongs

export class Travellers {
  private readonly program: Program;
  private readonly pieces: Quads;
  private readonly legs = new Legs();
  private pair = -1; // which legs are drawn, and by which streets
  private streets: Streets | null = null;

  constructor(gl: GL) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_piece", "a_when"]);
    this.pieces = new Quads(gl, [4, 4]);
  }

  get count(): number {
    return this.legs.count;
  }

  draw(scene: Scene, view: View): void {
    const { from, to, palette, streets } = scene;
    if (!from || !to || !scene.show.travellers) return;
    if (this.pair !== scene.pair || this.streets !== streets) this.pieces.fill(this.legs.between(from, to, scene.projection, streets));
    [this.pair, this.streets] = [scene.pair, streets];
    // Larger where there is room, small where the whole city is on a small screen.
    const room = Math.min(...view.scale);
    for (const dots of [0, 1]) {
      this.program.use(view, {
        u_progress: scene.progress,
        u_trail: streets ? TRAIL_ON_STREETS : TRAIL,
        u_radius: Math.min(Math.max(room / 460, 1.15), 5),
        u_alpha: scene.show.flows && !scene.show.zones ? UNDER_ARROWS : 1,
        u_dots: dots,
        u_color: premultiplied(palette.traveller),
        u_halo: premultiplied(palette.halo),
      });
      this.pieces.draw(dots ? this.legs.underWay : this.pieces.count);
    }
  }
}
