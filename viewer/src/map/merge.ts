// Who of one frame is who in another: ids are ascending in both, so one walk through both tells.

import type { Frame } from "../frame.ts";

export const WIDTH = 8; // before x, y; from x, y; to x, y; seen at from, seen at to

export interface Merged {
  ids: Uint32Array;
  values: Float32Array; // [n * WIDTH], places as shares of the box
}

const NOBODY = Infinity;
const SHARE = 65535;

// `earlier` is the merge that led to `from`: it tells where a traveller came from, for its tail.
export function mergeTravellers(from: Frame, to: Frame, earlier: Merged | null): Merged {
  const ids = new Uint32Array(from.ids.length + to.ids.length);
  const values = new Float32Array(ids.length * WIDTH);
  let [n, a, b, past] = [0, 0, 0, 0];
  while (a < from.ids.length || b < to.ids.length) {
    const [left, right] = [from.ids[a] ?? NOBODY, to.ids[b] ?? NOBODY];
    const id = Math.min(left, right);
    const place = n * WIDTH;
    const [born, ended] = [left !== id, right !== id];
    // Who is born appears where it will be; who ends vanishes where it was.
    const [x0, y0] = born ? [to.x[b]!, to.y[b]!] : [from.x[a]!, from.y[a]!];
    const [x1, y1] = ended ? [x0, y0] : [to.x[b]!, to.y[b]!];
    values[place + 2] = x0 / SHARE;
    values[place + 3] = y0 / SHARE;
    values[place + 4] = x1 / SHARE;
    values[place + 5] = y1 / SHARE;
    values[place + 6] = born ? 0 : 1;
    values[place + 7] = ended ? 0 : 1;
    while (earlier && past < earlier.ids.length && earlier.ids[past]! < id) past += 1;
    const known = earlier !== null && earlier.ids[past] === id && earlier.values[past * WIDTH + 6]! > 0;
    values[place] = known ? earlier.values[past * WIDTH + 2]! : x0 / SHARE;
    values[place + 1] = known ? earlier.values[past * WIDTH + 3]! : y0 / SHARE;
    ids[n] = id;
    n += 1;
    if (!born) a += 1;
    if (!ended) b += 1;
  }
  return { ids: ids.subarray(0, n), values: values.subarray(0, n * WIDTH) };
}
