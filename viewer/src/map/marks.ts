// Frames around a cell or an area: the one under the pointer, the selected one, the drawn one.

import type { Colour } from "./palette.ts";
import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import type { Rectangle, Scene } from "./scene.ts";

const VERTEX = `
in vec4 a_box;
out vec2 v_at;
flat out vec2 v_half;
void main() {
  vec2 low = pixel(a_box.xy), high = pixel(a_box.zw);
  v_half = 0.5 * (high - low);
  v_at = corner() * (v_half + 5.0);
  gl_Position = place(0.5 * (low + high) + v_at);
}`;

const FRAGMENT = `
uniform vec4 u_color, u_halo;
uniform float u_width, u_fill;
in vec2 v_at;
flat in vec2 v_half;
void main() {
  vec2 beyond = abs(v_at) - v_half;
  float far = max(beyond.x, beyond.y);
  float line = cover(abs(far) - 0.5 * u_width);
  float halo = cover(abs(far) - 0.5 * u_width - 1.5);
  float inside = far < 0.0 ? u_fill : 0.0;
  color = mix(max(u_halo * halo, u_color * inside), u_color, line);
}`;

interface Look {
  width: number; // CSS pixels
  fill: number; // how much of the colour inside
  strength: number;
}

export class Marks {
  private readonly program: Program;
  private readonly box: Quads;

  constructor(gl: GL) {
    this.program = new Program(gl, VERTEX, FRAGMENT, ["a_box"]);
    this.box = new Quads(gl, [4]);
  }

  draw({ hovered, selected, area, palette }: Scene, view: View): void {
    const mark = (box: Rectangle | null, { width, fill, strength }: Look) => {
      if (!box) return;
      const faded = ([red, green, blue, alpha]: Colour) => premultiplied([red, green, blue, alpha * strength]);
      this.box.fill(new Float32Array(box));
      this.program.use(view, { u_color: faded(palette.mark), u_halo: faded(palette.markHalo), u_width: width, u_fill: fill });
      this.box.draw();
    };
    mark(area, { width: 2, fill: 0.12, strength: 1 });
    mark(hovered, { width: 1, fill: 0.06, strength: 0.6 });
    mark(selected, { width: 2.5, fill: 0, strength: 1 });
  }
}
