// The legs of travellers: each the way between two frames, cut into straight pieces that know when they
// are driven. Times count frames: the leg under way takes from 0 to 1, the one before it from -1 to 0;
// trails are made of those before.

import type { Frame } from "../frame.ts";
import type { Projection } from "../projection.ts";
import { mergeTravellers, WIDTH } from "./merge.ts";
import type { Streets } from "./streets.ts";

export const PIECE = 8; // start x, y and end x, y on the sheet; begins, ends; seen at from, seen at to

const KEPT = { onStreets: 6, elsewhere: 3 }; // legs, of which trails are made

export class Legs {
  count = 0; // travellers
  underWay = 0; // pieces of legs under way; they come first
  private reached = -1; // the timestamp the last legs led to
  private last = new Map<number, number[][]>(); // the ways of every traveller, the last one first

  // All pieces of the legs from one frame to another; [n * PIECE].
  between(from: Frame, to: Frame, projection: Projection, streets: Streets | null): Float32Array {
    const { ids, values } = mergeTravellers(from, to);
    const earlier = this.reached === from.t && from !== to ? this.last : new Map<number, number[][]>();
    const ways = new Map<number, number[][]>();
    const pieces: number[] = [];
    const behind: number[] = [];
    const kept = streets ? KEPT.onStreets : KEPT.elsewhere;
    streets?.begin();
    ids.forEach((id, n) => {
      const [u0, v0, u1, v1, ...seen] = values.subarray(n * WIDTH, (n + 1) * WIDTH) as unknown as number[];
      const ends = [...projection.shareToSheet(u0!, v0!), ...projection.shareToSheet(u1!, v1!)] as const;
      const way = streets?.way(...(ends as [number, number, number, number])) ?? [...ends];
      const own = [way, ...(earlier.get(id) ?? []).slice(0, kept)];
      own.forEach((leg, back) => cut(leg, -back, seen, projection, back ? behind : pieces));
      ways.set(id, own);
    });
    [this.last, this.reached, this.count, this.underWay] = [ways, to.t, ids.length, pieces.length / PIECE];
    const all = new Float32Array(pieces.length + behind.length);
    all.set(pieces);
    all.set(behind, pieces.length);
    return all;
  }
}

// Add the pieces of a way, driven at one speed from a time on.
function cut(way: readonly number[], start: number, seen: readonly number[], { width, height }: Projection, pieces: number[]): void {
  const lengths: number[] = [];
  for (let at = 2; at < way.length; at += 2) {
    lengths.push(Math.hypot((way[at]! - way[at - 2]!) * width, (way[at + 1]! - way[at - 1]!) * height));
  }
  const whole = lengths.reduce((sum, length) => sum + length, 0);
  if (whole === 0 && start < 0) return; // who stood still left no trail
  let gone = 0;
  lengths.forEach((length, piece) => {
    if (whole > 0 && length === 0) return;
    const [begins, ends] = whole > 0 ? [gone / whole, (gone + length) / whole] : [0, 1];
    pieces.push(...way.slice(2 * piece, 2 * piece + 4), start + begins, start + ends, ...seen);
    gone += length;
  });
}
