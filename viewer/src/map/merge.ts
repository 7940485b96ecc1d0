// Who of one frame is who in another: ids are ascending in both, so one walk through both tells.

import type { Frame } from "../frame.ts";

export const WIDTH = 6; // from x, y; to x, y; seen at from, seen at to

export interface Merged {
  ids: Uint32Array;
  values: Float32Array; // [n * WIDTH], places as shares of the box
}

const NOBODY = Infinity;
const SHARE = 65535;

export function mergeTravellers(from: Frame, to: Frame): Merged {
  const ids = new Uint32Array(from.ids.length + to.ids.length);
  const values = new Float32Array(ids.length * WIDTH);
  let [n, a, b] = [0, 0, 0];
  while (a < from.ids.length || b < to.ids.length) {
    const [left, right] = [from.ids[a] ?? NOBODY, to.ids[b] ?? NOBODY];
    const id = Math.min(left, right);
    const [born, ended] = [left !== id, right !== id];
    // Who is born appears where it will be; who ends vanishes where it was.
    const [x0, y0] = born ? [to.x[b]!, to.y[b]!] : [from.x[a]!, from.y[a]!];
    const [x1, y1] = ended ? [x0, y0] : [to.x[b]!, to.y[b]!];
    values.set([x0 / SHARE, y0 / SHARE, x1 / SHARE, y1 / SHARE, born ? 0 : 1, ended ? 0 : 1], n * WIDTH);
    ids[n] = id;
    n += 1;
    if (!born) a += 1;
    if (!ended) b += 1;
  }
  return { ids: ids.subarray(0, n), values: values.subarray(0, n * WIDTH) };
}
