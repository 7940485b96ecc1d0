// The lines between cells and around the box, one device pixel wide.

import { type GL, Instances, premultiplied, Program, type View } from "./gl.ts";
import type { Scene } from "./scene.ts";

const VERTEX = `
in vec2 a_at;
void main() { gl_Position = place(pixel(a_at)); }`;

const FRAGMENT = `
uniform vec4 u_color;
void main() { color = u_color; }`;

const CLOSEST = 5; // CSS pixels; closer lines would be a veil

export class Grid {
  private readonly program: Program;
  private readonly lines: Instances;
  private readonly inner: number; // vertices between cells; those of the edge follow

  constructor(gl: GL, { projection, side }: Scene) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_at"]);
    this.lines = new Instances(gl, [2], false);
    const inner: number[] = [];
    for (let line = 1; line < side; line++) {
      const [x, y] = projection.shareToSheet(line / side, line / side);
      inner.push(x, 0, x, 1, 0, y, 1, y);
    }
    const edge = [0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0];
    this.inner = inner.length / 2;
    this.lines.fill(new Float32Array([...inner, ...edge]));
  }

  draw(scene: Scene, view: View): void {
    const { grid, edge } = scene.palette;
    if (Math.min(...view.scale) / scene.side >= CLOSEST) {
      this.program.use(view, { u_color: premultiplied(grid) });
      this.lines.drawLines(0, this.inner);
    }
    this.program.use(view, { u_color: premultiplied(edge) });
    this.lines.drawLines(this.inner, 8);
  }
}
