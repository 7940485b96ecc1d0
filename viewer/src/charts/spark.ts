// The small hill behind the scrubber: how many travellers there were over the whole history.

import type { Span } from "./span.ts";

// An area in a square of 100 by 100, which the page stretches.
export function sparkPath(t: readonly number[], n: readonly number[], { first, last }: Span): string {
  if (t.length < 2 || last <= first) return "";
  const top = Math.max(...n, 1);
  const x = (at: number) => (((at - first) / (last - first)) * 100).toFixed(2);
  const edge = t.map((at, i) => `L${x(at)} ${(100 - (n[i]! / top) * 100).toFixed(1)}`).join("");
  return `M${x(t[0]!)} 100${edge}L${x(t.at(-1)!)} 100Z`;
}
