// Roads above the cells, thin. A city has many and they do not move while history plays, so they are
// drawn into a texture when the camera has moved, and otherwise copied from it.

import { type GL, premultiplied, Program, Quads, type View } from "./gl.ts";
import type { Scene } from "./scene.ts";
import { PIECE, type Streets } from "./streets.ts";

const SEGMENT_VERTEX = `
in vec4 a_segment;
in vec2 a_kind; // class, and whether it is one-way
uniform float u_width;
out vec2 v_at;
flat out float v_half;
flat out float v_width;
void main() {
  v_width = u_width * (a_kind.x < 2.5 ? 2.0 : 1.0); // main streets are bolder
  vec2 start = pixel(a_segment.xy), end = pixel(a_segment.zw);
  vec2 way = end - start;
  float far = length(way);
  vec2 along = far > 0.0 ? way / far : vec2(1.0, 0.0);
  v_half = 0.5 * far;
  v_at = corner() * (vec2(v_half, 0.0) + 0.5 * v_width + 1.0);
  gl_Position = place(0.5 * (start + end) + along * v_at.x + vec2(-along.y, along.x) * v_at.y);
}`;

const SEGMENT_FRAGMENT = `
in vec2 v_at;
flat in float v_half;
flat in float v_width;
void main() {
  color = vec4(cover(length(vec2(max(abs(v_at.x) - v_half, 0.0), v_at.y)) - 0.5 * v_width));
}`;

const COPY_VERTEX = `
void main() { gl_Position = vec4(corner(), 0.0, 1.0); }`;

const COPY_FRAGMENT = `
uniform sampler2D u_roads;
uniform vec4 u_color;
void main() { color = u_color * texelFetch(u_roads, ivec2(gl_FragCoord.xy), 0).r; }`;

export class Roads {
  private readonly pieces: Quads;
  private readonly drawing: Program;
  private readonly copying: Program;
  private readonly screen: Quads;
  private readonly texture: WebGLTexture;
  private readonly target: WebGLFramebuffer;
  private filled: Streets | null = null;
  private drawn = ""; // the view that the texture shows

  constructor(private readonly gl: GL) {
    this.drawing = new Program(gl, SEGMENT_VERTEX, SEGMENT_FRAGMENT, ["a_segment", "a_kind"]);
    this.copying = new Program(gl, COPY_VERTEX, COPY_FRAGMENT, []);
    this.pieces = new Quads(gl, [4, PIECE - 4]);
    this.screen = new Quads(gl, [1]);
    this.screen.fill(new Float32Array(1));
    this.texture = gl.createTexture();
    this.target = gl.createFramebuffer();
  }

  draw(scene: Scene, view: View): void {
    const { streets } = scene;
    if (!streets || !scene.show.roads) return;
    if (this.filled !== streets) this.pieces.fill((this.filled = streets).pieces);
    this.gl.bindTexture(this.gl.TEXTURE_2D, this.texture);
    const key = JSON.stringify([view, this.pieces.count]);
    if (key !== this.drawn) this.redraw(view, scene.side);
    this.drawn = key;
    this.copying.use(view, { u_color: premultiplied(scene.palette.road) });
    this.screen.draw();
  }

  private redraw(view: View, side: number): void {
    const { gl } = this;
    const { width, height } = gl.canvas;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, width, height, 0, gl.RED, gl.UNSIGNED_BYTE, null);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.texture, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.blendEquation(gl.MAX); // where pieces meet they are not darker
    const cell = Math.min(...view.scale) / side;
    this.drawing.use(view, { u_width: Math.min(Math.max(cell / 60, 0.7), 4) });
    this.pieces.draw();
    gl.blendEquation(gl.FUNC_ADD);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
}
