// The little of WebGL that every part of the picture needs.
//
// All parts draw in "sheet" coordinates (see projection.ts), which `u_view` turns into CSS pixels
// from the middle of the canvas; the map is never turned or tilted, so that is all there is to it.

import type { Colour } from "./palette.ts";

export type GL = WebGL2RenderingContext;

export interface View {
  scale: [number, number]; // CSS pixels a sheet is wide and high
  shift: [number, number]; // of the sheet's lower left corner, from the middle of the canvas
  half: [number, number]; // half of the canvas, CSS pixels
  ratio: number; // device pixels in a CSS pixel
}

const HEAD = `#version 300 es
precision highp float;
uniform vec4 u_view;
uniform vec2 u_half;
uniform float u_ratio;
`;

const PLACE = `
vec2 pixel(vec2 sheet) { return sheet * u_view.xy + u_view.zw; }
vec4 place(vec2 at) { return vec4(at / u_half, 0.0, 1.0); }
vec2 corner() { return vec2(gl_VertexID & 1, gl_VertexID >> 1 & 1) * 2.0 - 1.0; }
`;

const INK = `
out vec4 color;
float cover(float distance) { return clamp(0.5 - distance * u_ratio, 0.0, 1.0); }
`;

type Value = number | readonly number[];

export class Program {
  private readonly program: WebGLProgram;
  private readonly places = new Map<string, WebGLUniformLocation | null>();

  constructor(
    private readonly gl: GL,
    vertex: string,
    fragment: string,
    attributes: readonly string[], // in the order of their places
  ) {
    this.program = gl.createProgram();
    const sources = [
      [gl.VERTEX_SHADER, HEAD + PLACE + vertex],
      [gl.FRAGMENT_SHADER, HEAD + INK + fragment],
    ] as const;
    for (const [kind, source] of sources) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    attributes.forEach((name, place) => gl.bindAttribLocation(this.program, place, name));
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(this.program)?.map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`shader: ${gl.getProgramInfoLog(this.program)} ${logs?.join(" ")}`);
    }
  }

  use(view: View, values: Record<string, Value>): void {
    this.gl.useProgram(this.program);
    this.set("u_view", [...view.scale, ...view.shift]);
    this.set("u_half", view.half);
    this.set("u_ratio", view.ratio);
    for (const [name, value] of Object.entries(values)) this.set(name, value);
  }

  setMany(name: string, vectors: readonly (readonly [number, number, number])[]): void {
    this.gl.uniform3fv(this.find(name), vectors.flat());
  }

  private set(name: string, value: Value): void {
    const { gl } = this;
    const place = this.find(name);
    if (typeof value === "number") gl.uniform1f(place, value);
    else if (value.length === 2) gl.uniform2fv(place, value);
    else gl.uniform4fv(place, value);
  }

  private find(name: string): WebGLUniformLocation | null {
    if (!this.places.has(name)) this.places.set(name, this.gl.getUniformLocation(this.program, name));
    return this.places.get(name)!;
  }
}

// Floats for every vertex: one buffer, attributes one after another.
class Vertices {
  protected readonly array: WebGLVertexArrayObject;
  private readonly buffer: WebGLBuffer;
  protected readonly width: number;

  constructor(
    protected readonly gl: GL,
    sizes: readonly number[],
  ) {
    this.array = gl.createVertexArray();
    this.buffer = gl.createBuffer();
    this.width = sizes.reduce((sum, size) => sum + size, 0);
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    let offset = 0;
    sizes.forEach((size, place) => {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 4 * this.width, 4 * offset);
      offset += size;
    });
    gl.bindVertexArray(null);
  }

  protected upload(values: Float32Array): void {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
  }
}

// Rectangles of which the shader places the corners. Not instanced: software rendering takes every
// instance as a draw of its own, which makes thousands of small ones several times slower.
export class Quads extends Vertices {
  private readonly corners: WebGLBuffer;
  private room = 0; // for so many quads there are indices
  count = 0;

  constructor(gl: GL, sizes: readonly number[]) {
    super(gl, sizes);
    this.corners = gl.createBuffer();
  }

  fill(values: Float32Array): void {
    const { width } = this;
    this.count = values.length / width;
    const expanded = new Float32Array(4 * values.length);
    for (let quad = 0; quad < this.count; quad++) {
      const own = values.subarray(quad * width, (quad + 1) * width);
      for (let corner = 0; corner < 4; corner++) expanded.set(own, (4 * quad + corner) * width);
    }
    this.upload(expanded);
    if (this.count > this.room) this.makeRoom(2 * this.count);
  }

  draw(count = this.count): void {
    if (!count) return; // before the first quad there are no indices to draw by
    const { gl } = this;
    gl.bindVertexArray(this.array);
    gl.drawElements(gl.TRIANGLES, 6 * count, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
  }

  private makeRoom(room: number): void {
    const { gl } = this;
    const indices = new Uint32Array(6 * room);
    for (let quad = 0; quad < room; quad++) indices.set([0, 1, 2, 2, 1, 3].map((corner) => 4 * quad + corner), 6 * quad);
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.corners);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    this.room = room;
  }
}

// Canvases blend colours that are already multiplied by their alpha.
export const premultiplied = ([red, green, blue, alpha]: Colour): Colour => [red * alpha, green * alpha, blue * alpha, alpha];
