// One timestamp as the server packs it: counts per cell, moves, and a few thousand travellers.

const VERSION = 1;
const HEADER_WORDS = 10;
export const DIRECTIONS = 9;
export const STAY = 4;

export interface Frame {
  t: number;
  side: number;
  nPoints: number;
  nBorn: number;
  nEnded: number;
  nReports: number;
  counts: Uint32Array; // [n_cells], row by row from the lower left
  flows: Uint32Array | null; // [n_cells * 9], moves since t - 1 by origin and direction
  halvings: number; // travellers are one stream in 2^halvings
  ids: Uint32Array; // [n_travellers], ascending
  x: Uint16Array; // [n_travellers], 0..65535 of the box
  y: Uint16Array;
}

export function decodeFrame(buffer: ArrayBuffer): Frame {
  const header = new Uint32Array(buffer, 0, HEADER_WORDS);
  const [version, t, side, nPoints, nBorn, nEnded, nReports, hasFlows, n, halvings] = header as unknown as number[];
  if (version !== VERSION) throw new Error(`frame version ${version} is not ${VERSION}`);
  let place = 4 * HEADER_WORDS;
  const words = (length: number) => {
    const found = new Uint32Array(buffer, place, length);
    place += 4 * length;
    return found;
  };
  const halves = (length: number) => {
    const found = new Uint16Array(buffer, place, length);
    place += 2 * (length + (length % 2));
    return found;
  };
  const nCells = side! * side!;
  const counts = words(nCells);
  const flows = hasFlows ? words(nCells * DIRECTIONS) : null;
  const ids = words(n!);
  return {
    t: t!,
    side: side!,
    nPoints: nPoints!,
    nBorn: nBorn!,
    nEnded: nEnded!,
    nReports: nReports!,
    counts,
    flows,
    halvings: halvings!,
    ids,
    x: halves(n!),
    y: halves(n!),
  };
}
