// The lines between cells and around the box.

import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import type { Scene } from "./scene.ts";

// Each line is a strip one pixel wide, on whole device pixels so that all look the same.
const VERTEX = `
in vec4 a_line;
void main() {
  vec2 low = pixel(a_line.xy), high = pixel(a_line.zw);
  vec2 whole = floor((mix(low, high, 0.5 + 0.5 * corner()) + u_half) * u_ratio + 0.5);
  vec2 thin = vec2(equal(a_line.xy, a_line.zw)) * step(0.0, corner());
  gl_Position = place((whole + thin) / u_ratio - u_half);
}`;

const FRAGMENT = `
uniform vec4 u_color;
void main() { color = u_color; }`;

const CLOSEST = 5; // CSS pixels; closer lines would be a veil

export class Grid {
  private readonly program: Program;
  private readonly inner: Quads; // between cells
  private readonly edge: Quads; // around the box

  constructor(gl: GL, { projection, side }: Scene) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_line"]);
    this.inner = new Quads(gl, [4]);
    this.edge = new Quads(gl, [4]);
    const inner: number[] = [];
    for (let line = 1; line < side; line++) {
      const [x, y] = projection.shareToSheet(line / side, line / side);
      inner.push(x, 0, x, 1, 0, y, 1, y);
    }
    this.inner.fill(new Float32Array(inner));
    this.edge.fill(new Float32Array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1]));
  }

  draw(scene: Scene, view: View): void {
    const { grid, edge } = scene.palette;
    if (!scene.show.zones && Math.min(...view.scale) / scene.side >= CLOSEST) {
      this.program.use(view, { u_color: premultiplied(grid) });
      this.inner.draw();
    }
    this.program.use(view, { u_color: premultiplied(edge) });
    this.edge.draw();
  }
}
