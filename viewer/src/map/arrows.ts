// One arrow a cell: where those who left it went on balance, the longer and wider the more they were.
// Where replicas do not agree on that there is none.

import { type Frame, movesByChance } from "../frame.ts";
import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import type { Scene } from "./scene.ts";

const VERTEX = `
in vec2 a_at;
in vec4 a_flow;
uniform float u_progress, u_max;
uniform vec2 u_cell;
out vec2 v_at;
flat out vec2 v_size;
flat out float v_alpha;
void main() {
  vec2 flow = mix(a_flow.xy, a_flow.zw, u_progress);
  float share = min(length(flow) / u_max, 1.0);
  if (share < 0.03) { gl_Position = vec4(2.0, 2.0, 0.0, 1.0); return; }
  float cell = min(u_cell.x, u_cell.y);
  float strength = sqrt(share);
  v_size = vec2(0.46 * cell * (0.3 + 0.7 * strength), clamp(0.03 * cell * (0.5 + strength), 0.7, 6.0));
  v_alpha = smoothstep(0.03, 0.1, share) * (0.7 + 0.3 * strength);
  vec2 along = normalize(flow);
  v_at = corner() * (vec2(v_size.x, 4.5 * v_size.y) + 3.0);
  vec2 across = vec2(-along.y, along.x);
  gl_Position = place(pixel(a_at) + along * v_at.x + across * v_at.y);
}`;

// Distance to a shaft with a head, both along the x axis; the halo is the same shape, a little larger.
const FRAGMENT = `
uniform vec4 u_color, u_halo;
in vec2 v_at;
flat in vec2 v_size;
flat in float v_alpha;
void main() {
  float tip = v_size.x, thick = v_size.y;
  float head = min(6.0 * thick, 1.4 * tip);
  float neck = tip - head;
  vec2 at = vec2(v_at.x, abs(v_at.y));
  float taper = thick * (0.35 + 0.65 * clamp((at.x + tip) / (2.0 * tip), 0.0, 1.0));
  float shaft = max(at.y - taper, max(at.x - neck, -tip - at.x));
  float slope = 0.62;
  float wedge = max((at.y - (tip - at.x) * slope) * inversesqrt(1.0 + slope * slope), neck - at.x);
  float far = min(shaft, wedge);
  color = mix(u_halo * cover(far - 1.2), u_color, cover(far)) * v_alpha;
}`;

const WIDTH = 6;

// What is drawn of the moves of a frame; [n_cells * 2].
export function shownMoves(frame: Frame): Float32Array | null {
  return frame.moves && frame.moves.map((step, place) => (movesByChance(frame, place >> 1) ? 0 : step));
}

export function largestMove(frame: Frame | null): number {
  const moves = frame && shownMoves(frame);
  let largest = 0;
  for (let place = 0; moves && place < moves.length; place += 2) largest = Math.max(largest, Math.hypot(moves[place]!, moves[place + 1]!));
  return largest;
}

export class Arrows {
  private readonly program: Program;
  private readonly cells: Quads;
  private readonly values: Float32Array;
  private pair = -1;

  constructor(gl: GL, { projection, side }: Scene) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_at", "a_flow"]);
    this.cells = new Quads(gl, [2, 4]);
    this.values = new Float32Array(side * side * WIDTH);
    for (let cell = 0; cell < side * side; cell++) {
      const middle = [((cell % side) + 0.5) / side, (Math.floor(cell / side) + 0.5) / side] as const;
      this.values.set(projection.shareToSheet(...middle), cell * WIDTH);
    }
  }

  draw(scene: Scene, view: View): void {
    const { from, to, side, palette } = scene;
    if (!from || !to || !scene.show.flows || scene.show.zones) return;
    if (this.pair !== scene.pair) this.fill(shownMoves(from), shownMoves(to));
    this.pair = scene.pair;
    this.program.use(view, {
      u_progress: scene.progress,
      u_max: scene.maxFlow,
      u_cell: [view.scale[0] / side, view.scale[1] / side],
      u_color: premultiplied(palette.arrow),
      u_halo: premultiplied(palette.halo),
    });
    this.cells.draw();
  }

  private fill(...moves: (Float32Array | null)[]): void {
    moves.forEach((steps, which) => {
      for (let cell = 0; cell * WIDTH < this.values.length; cell++) {
        this.values[cell * WIDTH + 2 + 2 * which] = steps?.[2 * cell] ?? 0;
        this.values[cell * WIDTH + 3 + 2 * which] = steps?.[2 * cell + 1] ?? 0;
      }
    });
    this.cells.fill(this.values);
  }
}
