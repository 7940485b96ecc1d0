// Streets as a graph: on which of them a place lies, and the fastest way from one place to another.
//
// Releases have one place per traveller and timestamp, and a car passes several crossings between
// two of them. What is drawn between is a guess from the public map; the places are those released.

import type { Projection } from "../projection.ts";

export const PIECE = 6; // start x, y and end x, y on the sheet; class; 1 if it is driven from start to end only
const CLASSES = 6; // from 0, the fastest
const CLASS_RATIO = 1.5; // each class is so much slower than the one before
const UNKNOWN = 3;
const NEAR = 1 / 300; // of the sheet: a place farther from every street is on none
const MOST_BUCKETS = 256; // along each side
const MOST_VISITS = 400; // crossings looked at for one way; beyond, it is straight
const MOST_VISITS_IN_ALL = 80_000; // for one step of all travellers: a few dozen milliseconds

interface Spot {
  piece: number;
  share: number; // of the piece that is behind
}

// All pieces of all roads on the sheet; [n * PIECE].
export function piecesOf(roads: GeoJSON.FeatureCollection, projection: Projection): Float32Array {
  const found: number[] = [];
  for (const { geometry, properties } of roads.features) {
    const given: unknown = properties?.["class"];
    const kind = typeof given === "number" ? Math.min(Math.max(given, 0), CLASSES) : UNKNOWN;
    const oneWay = properties?.["oneway"] === "yes" ? 1 : 0;
    const add = (line: GeoJSON.Position[]) => {
      const places = line.map(([x, y]) => projection.toSheet(x!, y!));
      for (let piece = 1; piece < places.length; piece++) found.push(...places[piece - 1]!, ...places[piece]!, kind, oneWay);
    };
    if (geometry?.type === "LineString") add(geometry.coordinates);
    if (geometry?.type === "MultiLineString") geometry.coordinates.forEach(add);
  }
  return new Float32Array(found);
}

// Lists of numbers, one after another: those of list i are values[begin[i]] to values[begin[i + 1] - 1].
interface Lists {
  begin: Int32Array;
  values: Int32Array;
}

function listed(nLists: number, each: (put: (list: number, value: number) => void) => void): Lists {
  const begin = new Int32Array(nLists + 1);
  each((list) => (begin[list + 1]! += 1));
  for (let list = 0; list < nLists; list++) begin[list + 1]! += begin[list]!;
  const values = new Int32Array(begin[nLists]!);
  const next = begin.slice();
  each((list, value) => (values[next[list]!++] = value));
  return { begin, values };
}

export class Streets {
  private readonly ends: Int32Array; // [2 * n], crossings at the start and the end of a piece
  private readonly costs: Float32Array; // [n], time to drive along a piece
  private readonly x: number[] = []; // of crossings, on the sheet
  private readonly y: number[] = [];
  private readonly meeting: Lists; // pieces at every crossing
  private readonly near: Lists; // pieces in every bucket
  private readonly nBuckets: number;
  private readonly time: Float64Array; // of the search under way, by crossing
  private readonly before: Int32Array;
  private readonly seen: Int32Array; // the search that wrote time and before
  private search = 0;
  private visitsLeft = 0;

  // `aspect`: width and height of the sheet in any common unit.
  constructor(
    readonly pieces: Float32Array,
    private readonly aspect: readonly [number, number],
  ) {
    const n = pieces.length / PIECE;
    const known = new Map<string, number>();
    const crossing = (x: number, y: number) => {
      const key = `${x} ${y}`;
      const found = known.get(key) ?? this.x.length;
      if (found === this.x.length) {
        known.set(key, found);
        this.x.push(x);
        this.y.push(y);
      }
      return found;
    };
    this.ends = new Int32Array(2 * n);
    this.costs = new Float32Array(n);
    for (let piece = 0; piece < n; piece++) {
      const [x0, y0, x1, y1, kind] = pieces.subarray(piece * PIECE, (piece + 1) * PIECE) as unknown as number[];
      this.ends[2 * piece] = crossing(x0!, y0!);
      this.ends[2 * piece + 1] = crossing(x1!, y1!);
      this.costs[piece] = this.distance(x1! - x0!, y1! - y0!) * CLASS_RATIO ** kind!;
    }
    this.meeting = listed(this.x.length, (put) => this.ends.forEach((node, end) => put(node, end >> 1)));
    this.nBuckets = Math.min(Math.max(Math.round(Math.sqrt(n)), 1), MOST_BUCKETS);
    this.near = listed(this.nBuckets ** 2, (put) => this.bucketed(put));
    this.time = new Float64Array(this.x.length);
    this.before = new Int32Array(this.x.length);
    this.seen = new Int32Array(this.x.length);
  }

  // Ways are asked for in batches, and a batch takes a limited time.
  begin(): void {
    this.visitsLeft = MOST_VISITS_IN_ALL;
  }

  // Places on the way from one place to another, both included; a straight line where none is found.
  way(x0: number, y0: number, x1: number, y1: number): number[] {
    const straight = [x0, y0, x1, y1];
    if (x0 === x1 && y0 === y1) return straight;
    const here = this.spot(x0, y0);
    const there = this.spot(x1, y1);
    if (!here || !there || here.piece === there.piece) return straight;
    const way = [x0, y0];
    for (const node of this.passed(here, there)) way.push(this.x[node]!, this.y[node]!);
    way.push(x1, y1);
    return way;
  }

  distance(dx: number, dy: number): number {
    return Math.hypot(dx * this.aspect[0], dy * this.aspect[1]);
  }

  // The piece a place lies on.
  spot(x: number, y: number): Spot | null {
    const bucket = (at: number) => Math.min(Math.max(Math.floor(at * this.nBuckets), 0), this.nBuckets - 1);
    let found: Spot | null = null;
    let least = NEAR ** 2;
    for (let row = bucket(y - NEAR); row <= bucket(y + NEAR); row++) {
      for (let column = bucket(x - NEAR); column <= bucket(x + NEAR); column++) {
        const list = row * this.nBuckets + column;
        for (let k = this.near.begin[list]!; k < this.near.begin[list + 1]!; k++) {
          const piece = this.near.values[k]!;
          const start = piece * PIECE;
          const ax = this.pieces[start]!;
          const ay = this.pieces[start + 1]!;
          const dx = this.pieces[start + 2]! - ax;
          const dy = this.pieces[start + 3]! - ay;
          const share = Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1), 0), 1);
          const gap = (ax + share * dx - x) ** 2 + (ay + share * dy - y) ** 2;
          if (gap >= least) continue;
          found = { piece, share };
          least = gap;
        }
      }
    }
    return found;
  }

  // Crossings of the fastest way (A*): what is left takes at least the straight line on the fastest class.
  private passed(here: Spot, there: Spot): number[] {
    const { time, before, seen } = this;
    const search = ++this.search;
    const goal = 2 * there.piece;
    const [gx, gy] = [this.x[this.ends[goal]!]!, this.y[this.ends[goal]!]!];
    const reach = this.costs[there.piece]!;
    const heap = new Heap();
    const reachNode = (node: number, cost: number, from: number) => {
      if (seen[node] === search && time[node]! <= cost) return;
      seen[node] = search;
      time[node] = cost;
      before[node] = from;
      heap.push(cost + Math.max(this.distance(this.x[node]! - gx, this.y[node]! - gy) - reach, 0), node);
    };
    if (!this.isOneWay(here.piece)) reachNode(this.ends[2 * here.piece]!, here.share * this.costs[here.piece]!, -1);
    reachNode(this.ends[2 * here.piece + 1]!, (1 - here.share) * this.costs[here.piece]!, -1);
    let [best, last] = [Infinity, -1];
    for (let visit = 0; visit < MOST_VISITS && this.visitsLeft > 0; visit++, this.visitsLeft--) {
      const next = heap.pop();
      if (!next || next.key >= best) return this.walkBack(last);
      const { node } = next;
      const cost = time[node]!;
      for (const end of this.isOneWay(there.piece) ? [0] : [0, 1]) {
        const rest = (end ? 1 - there.share : there.share) * reach;
        if (this.ends[goal + end] === node && cost + rest < best) [best, last] = [cost + rest, node];
      }
      for (let k = this.meeting.begin[node]!; k < this.meeting.begin[node + 1]!; k++) {
        const piece = this.meeting.values[k]!;
        if (this.isOneWay(piece) && this.ends[2 * piece] !== node) continue;
        const other = this.ends[2 * piece]! === node ? this.ends[2 * piece + 1]! : this.ends[2 * piece]!;
        reachNode(other, cost + this.costs[piece]!, node);
      }
    }
    return [];
  }

  private isOneWay(piece: number): boolean {
    return this.pieces[piece * PIECE + 5] === 1;
  }

  private walkBack(last: number): number[] {
    const nodes: number[] = [];
    for (let node = last; node >= 0; node = this.before[node]!) nodes.push(node);
    return nodes.reverse();
  }

  private bucketed(put: (list: number, value: number) => void): void {
    const bucket = (at: number) => Math.min(Math.max(Math.floor(at * this.nBuckets), 0), this.nBuckets - 1);
    for (let piece = 0; piece * PIECE < this.pieces.length; piece++) {
      const [x0, y0, x1, y1] = this.pieces.subarray(piece * PIECE, piece * PIECE + 4) as unknown as number[];
      for (let row = bucket(Math.min(y0!, y1!)); row <= bucket(Math.max(y0!, y1!)); row++) {
        for (let column = bucket(Math.min(x0!, x1!)); column <= bucket(Math.max(x0!, x1!)); column++) put(row * this.nBuckets + column, piece);
      }
    }
  }
}

// Smallest key first.
class Heap {
  private readonly items: { key: number; node: number }[] = [];

  push(key: number, node: number): void {
    const { items } = this;
    let place = items.push({ key, node }) - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (items[above]!.key <= key) break;
      [items[place], items[above]] = [items[above]!, items[place]!];
      place = above;
    }
  }

  pop(): { key: number; node: number } | undefined {
    const { items } = this;
    const first = items[0];
    const last = items.pop();
    if (!items.length || !last) return first;
    items[0] = last;
    for (let place = 0; ; ) {
      let least = place;
      for (const below of [2 * place + 1, 2 * place + 2]) {
        if (below < items.length && items[below]!.key < items[least]!.key) least = below;
      }
      if (least === place) return first;
      [items[place], items[least]] = [items[least]!, items[place]!];
      place = least;
    }
  }
}
