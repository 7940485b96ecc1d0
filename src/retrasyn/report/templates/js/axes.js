// Axes: sensible tick marks for numbers and for time.

function niceStep(range, n) {
  const rough = range / Math.max(n, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const digit = [1, 2, 2.5, 5, 10].find((d) => d * power >= rough * 0.999);
  return digit * power;
}

function ticks(low, high, n) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, n);
  const marks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) marks.push(i * step + 0);
  return marks;
}

function tickText(value, step) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(1)} k`;
  const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(step || 1) + 1e-9)));
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const clockSteps = [
  1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute,
  hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 28 * day,
  91 * day, 365 * day,
];
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function clockMark(seconds, step) {
  const time = new Date(seconds * 1000);
  if (step >= day || seconds % day === 0) return `${time.getUTCDate()} ${months[time.getUTCMonth()]}`;
  return time.toISOString().slice(11, step < minute ? 19 : 16);
}

// Marks of the time axis as [frame, text]; frames may be fractions.
function timeMarks(n) {
  const { first, width, clock, n: nTimestamps } = source.time;
  const last = first + nTimestamps - 1;
  if (!clock || last === first) {
    let marks = ticks(first, last, n).filter(Number.isInteger);
    if (!marks.length) marks = [first];
    return marks.map((t) => [(t - first) / width, t.toLocaleString("en")]);
  }
  const begin = clock.begin + first * clock.period;
  const end = clock.begin + last * clock.period;
  const step = clockSteps.find((s) => s >= (end - begin) / n) || niceStep(end - begin, n);
  const marks = [];
  for (let s = Math.ceil(begin / step) * step; s <= end; s += step) {
    marks.push([(s - begin) / clock.period / width, clockMark(s, step)]);
  }
  return marks;
}

// An empty chart with its vertical axis from 0 to `top` (or as given); returns where things go.
function frameChart(place, { width, height, label, low = 0, top, nTicks = 5, format = tickText, left = 52, right = 14 }) {
  const area = { left, right: width - right, top: 10, bottom: height - 26 };
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  const y = (value) => area.bottom - ((value - low) / (top - low || 1)) * (area.bottom - area.top);
  const marks = ticks(low, top, nTicks);
  const step = marks.length > 1 ? marks[1] - marks[0] : 1;
  for (const value of marks) {
    drawing.append(
      svg("line", { class: value === low ? "base" : "rule", x1: area.left, x2: area.right, y1: y(value), y2: y(value) }),
      svg("text", { x: area.left - 8, y: y(value) + 4, "text-anchor": "end", text: format(value, step) }),
    );
  }
  place.replaceChildren(drawing);
  return { drawing, area, y };
}

function markBottom(drawing, area, x, text) {
  drawing.append(
    svg("line", { class: "base", x1: x, x2: x, y1: area.bottom, y2: area.bottom + 4 }),
    svg("text", { x, y: area.bottom + 18, "text-anchor": "middle", text }),
  );
}
