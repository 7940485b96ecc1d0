// One timestamp, or some on average, as the server packs it: counts per cell, moves, a few thousand travellers.

const VERSION = 2;
const HEADER_WORDS = 9;
const UNCLEAR_CELL = 1;
const UNCLEAR_MOVES = 2;

// Where the true value lies nine times of ten.
export interface Interval {
  low: number;
  high: number;
}

export interface About extends Partial<Interval> {
  n: number;
}

export interface Counts {
  n: Float32Array;
  low: Float32Array | null; // null: there are no replicas to tell
  high: Float32Array | null;
}

export interface Frame {
  t: number;
  side: number;
  rounds: number; // over which numbers are averages
  replicas: number;
  nReports: number; // of t alone
  totals: Counts; // [3], points, streams that began, streams that ended
  cells: Counts; // [n_cells], row by row from the lower left
  moves: Float32Array | null; // [n_cells * 2], columns and rows that streams moved on from a cell, on balance
  flags: Uint8Array | null; // [n_cells], what may be chance
  halvings: number; // travellers are one stream in 2^halvings
  ids: Uint32Array; // [n_travellers], ascending
  x: Uint16Array; // [n_travellers], 0..65535 of the box
  y: Uint16Array;
}

export const about = ({ n, low, high }: Counts, place: number): About =>
  low && high ? { n: n[place]!, low: low[place]!, high: high[place]! } : { n: n[place]! };

export const POINTS = 0;
export const BORN = 1;
export const ENDED = 2;

export const isUnclear = ({ flags }: Frame, cell: number) => flags !== null && (flags[cell]! & UNCLEAR_CELL) > 0;
export const movesByChance = ({ flags }: Frame, cell: number) => flags !== null && (flags[cell]! & UNCLEAR_MOVES) > 0;

export function decodeFrame(buffer: ArrayBuffer): Frame {
  const header = new Uint32Array(buffer, 0, HEADER_WORDS);
  const [version, t, side, rounds, replicas, nReports, hasMoves, n, halvings] = header as unknown as number[];
  if (version !== VERSION) throw new Error(`frame version ${version} is not ${VERSION}`);
  let place = 4 * HEADER_WORDS;
  const take = <T>(kind: new (buffer: ArrayBuffer, place: number, length: number) => T, length: number, bytes: number): T => {
    const found = new kind(buffer, place, length);
    place += Math.ceil((length * bytes) / 4) * 4;
    return found;
  };
  const numbers = (length: number) => take(Float32Array, length, 4);
  const nCells = side! * side!;
  const [totals, cells] = [numbers(3), numbers(nCells)];
  const moves = hasMoves ? numbers(2 * nCells) : null;
  const ends = (length: number) => (replicas ? { low: numbers(length), high: numbers(length) } : { low: null, high: null });
  return {
    t: t!,
    side: side!,
    rounds: rounds!,
    replicas: replicas!,
    nReports: nReports!,
    totals: { n: totals, ...ends(3) },
    cells: { n: cells, ...ends(nCells) },
    moves,
    flags: replicas ? take(Uint8Array, nCells, 1) : null,
    halvings: halvings!,
    ids: take(Uint32Array, n!, 4),
    x: take(Uint16Array, n!, 2),
    y: take(Uint16Array, n!, 2),
  };
}
