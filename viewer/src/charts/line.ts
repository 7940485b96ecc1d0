// A line chart over time. A click goes to that time; the time shown is marked.

import { bandPath, linePath, placeOf, ticks, type Values } from "./axes.ts";
import type { Span } from "./span.ts";
import { svg } from "./svg.ts";

export interface Line {
  style: string; // class of the line
  values: Values;
  band?: { low: Values; high: Values } | null; // between which the true values lie nine times of ten
  name?: string; // told beside the value under the pointer
}

export interface Content {
  t: readonly number[];
  lines: readonly Line[];
}

export interface Extent extends Span {
  low: number;
  high: number;
  now: number | null;
}

export interface Words {
  label(extent: Extent): string; // for those who do not see it
  time(t: number, span: Span): string;
  value(value: number, low?: number, high?: number): string;
  mark(value: number): string; // shorter, at the axis
  least: number; // between two marks
}

const HEIGHT = 148;
const EDGE = { top: 10, right: 8, bottom: 22, left: 40 };

export class LineChart {
  private content: Content = { t: [], lines: [] };
  private t = 0;
  private drawing = svg("svg", { role: "img", height: HEIGHT });
  private needle = svg("g", { class: "needle" });
  private pointer = svg("g", { class: "pointer" });
  private x = (_i: number) => 0;
  private y = (_value: number) => 0;

  constructor(
    private readonly place: HTMLElement,
    private readonly words: Words,
    seek: (t: number) => void,
  ) {
    place.append(this.drawing);
    // A hidden chart has no width; it is drawn when it gets one.
    new ResizeObserver(() => this.draw()).observe(place);
    this.drawing.addEventListener("pointermove", (event) => this.point(this.pointer, this.under(event), true));
    this.drawing.addEventListener("pointerleave", () => this.pointer.replaceChildren());
    this.drawing.addEventListener("click", (event) => {
      const t = this.content.t[this.under(event)];
      if (t !== undefined) seek(t);
    });
  }

  show(content: Content): void {
    this.content = content;
    this.draw();
  }

  mark(t: number): void {
    this.t = t;
    this.point(this.needle, this.at(t), false);
    this.describe();
  }

  // Again, because the language has changed.
  draw(): void {
    const width = this.place.clientWidth;
    const { t, lines } = this.content;
    if (!width || !t.length) return this.drawing.replaceChildren();
    const highest = lines.flatMap(({ values, band }) => [...values, ...(band?.high ?? [])].map((value) => value ?? 0));
    const marks = ticks(Math.max(0, ...highest), 3, this.words.least);
    const right = width - EDGE.right;
    const bottom = HEIGHT - EDGE.bottom;
    const top = marks.at(-1)!;
    this.x = (i) => EDGE.left + (t.length > 1 ? i / (t.length - 1) : 0.5) * (right - EDGE.left);
    this.y = (value) => bottom - (value / top) * (bottom - EDGE.top);
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.drawing.replaceChildren(
      ...marks.flatMap((value) => [
        svg("path", { class: value ? "rule" : "base", d: `M${EDGE.left} ${this.y(value)}H${right}` }),
        svg("text", { x: EDGE.left - 6, y: this.y(value) + 4, "text-anchor": "end" }, this.words.mark(value)),
      ]),
      ...this.ends(right),
      ...lines.map(({ style, band }) => svg("path", { class: `band ${style}`, d: band ? bandPath(band.low, band.high, this.x, this.y) : "" })),
      ...lines.map(({ style, values }) => svg("path", { class: `curve ${style}`, d: linePath(values, this.x, this.y) })),
      this.needle,
      this.pointer,
    );
    this.mark(this.t);
  }

  private ends(right: number): SVGTextElement[] {
    const { t } = this.content;
    if (!t.length) return [];
    const text = (x: number, at: number, anchor: string) =>
      svg("text", { x, y: HEIGHT - 5, "text-anchor": anchor }, this.words.time(at, this.span));
    return [text(EDGE.left, t[0]!, "start"), text(right, t.at(-1)!, "end")];
  }

  private get span(): Span {
    const { t } = this.content;
    return { first: t[0] ?? 0, last: t.at(-1) ?? 0 };
  }

  private at(t: number): number {
    const { t: known } = this.content;
    const i = placeOf(t, known);
    return known[i] === t ? i : -1;
  }

  private under(event: PointerEvent | MouseEvent): number {
    const { t } = this.content;
    const share = (event.clientX - this.drawing.getBoundingClientRect().left - this.x(0)) / (this.x(t.length - 1) - this.x(0) || 1);
    return Math.min(Math.max(Math.round(share * (t.length - 1)), 0), t.length - 1);
  }

  private point(group: SVGGElement, i: number, told: boolean): void {
    const { t, lines } = this.content;
    if (t[i] === undefined) return group.replaceChildren();
    const x = this.x(i);
    const parts: SVGElement[] = [svg("path", { d: `M${x} ${EDGE.top - 4}V${HEIGHT - EDGE.bottom}` })];
    const known = lines.filter(({ values }) => values[i] != null);
    for (const { style, values } of known) parts.push(svg("circle", { class: style, cx: x, cy: this.y(values[i]!), r: 4 }));
    if (told) {
      const values = known.map(({ name, values, band }) => `${name ? `${name} ` : ""}${this.words.value(values[i]!, band?.low[i] ?? undefined, band?.high[i] ?? undefined)}`);
      const text = [this.words.time(t[i], this.span), ...values].join(" · ");
      const left = x < this.place.clientWidth / 2;
      parts.push(svg("text", { class: "strong", x: left ? x + 7 : x - 7, y: EDGE.top + 4, "text-anchor": left ? "start" : "end" }, text));
    }
    group.replaceChildren(...parts);
  }

  private describe(): void {
    const { lines } = this.content;
    const known = lines.flatMap(({ values }) => values.filter((value) => value !== null));
    const extent = {
      ...this.span,
      low: Math.min(...known),
      high: Math.max(...known),
      now: lines[0]?.values[this.at(this.t)] ?? null,
    };
    this.drawing.setAttribute("aria-label", known.length ? this.words.label(extent) : "–");
  }
}
