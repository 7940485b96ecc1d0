// Where marks stand on an axis, and the path of a line.

export type Values = readonly (number | null)[];

// Round numbers from 0 on, `least` or more apart; the last one is not below `top`.
export function ticks(top: number, n: number, least = 0): number[] {
  const rough = Math.max((top || 1) / n, least);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((digit) => digit * power >= rough * 0.999)!;
  return Array.from({ length: Math.ceil((top || least || 1) / step - 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

// Unknown values leave a gap.
export function linePath(values: Values, x: (i: number) => number, y: (value: number) => number): string {
  let pen = "M";
  let path = "";
  values.forEach((value, i) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

// Between two lines; where either is unknown there is nothing.
export function bandPath(low: Values, high: Values, x: (i: number) => number, y: (value: number) => number): string {
  const known = low.map((value, i) => value !== null && high[i] != null);
  let path = "";
  for (let first = 0; first < known.length; first++) {
    if (!known[first]) continue;
    let last = first;
    while (known[last + 1]) last += 1;
    const places = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    const upper = places.map((i) => `${x(i).toFixed(1)} ${y(high[i]!).toFixed(1)}`);
    const lower = places.reverse().map((i) => `${x(i).toFixed(1)} ${y(low[i]!).toFixed(1)}`);
    path += `M${[...upper, ...lower].join("L")}Z`;
    first = last;
  }
  return path;
}

// The place of t in ascending timestamps, or of the last one before it.
export function placeOf(t: number, timestamps: readonly number[]): number {
  let low = 0;
  let high = timestamps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timestamps[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
