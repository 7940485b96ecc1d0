// A route of a few cells as a small drawing on its piece of the grid.

const glyphSize = 76;
const wholeGrid = 8; // grids up to this side are drawn whole

// The square of cells to draw: all of a small grid, the neighbourhood of a route on a large one.
function glyphWindow(cells, isWhole) {
  if (side <= wholeGrid || isWhole) return { column: 0, row: 0, n: side };
  const n = 7;
  const start = (values) => {
    const middle = (Math.min(...values) + Math.max(...values) + 1) / 2;
    return Math.min(Math.max(Math.round(middle - n / 2), 0), side - n);
  };
  return { column: start(cells.map((c) => c % side)), row: start(cells.map((c) => Math.floor(c / side))), n };
}

function arrowTip(from, to, size) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const corner = (turn) => `${(to[0] - size * Math.cos(angle + turn)).toFixed(1)} ${(to[1] - size * Math.sin(angle + turn)).toFixed(1)}`;
  return `M${to[0].toFixed(1)} ${to[1].toFixed(1)}L${corner(0.5)}L${corner(-0.5)}Z`;
}

// Every step keeps to the right of its way, so that A to B to A shows as there and back.
function routePoints(cells, window) {
  const unit = glyphSize / window.n;
  const inside = (place) => Math.min(Math.max(place, 5), glyphSize - 5);
  const middles = cells.map((cell) => [
    inside(((cell % side) - window.column + 0.5) * unit),
    inside(glyphSize - (Math.floor(cell / side) - window.row + 0.5) * unit),
  ]);
  const hasReturn = new Set(cells).size < cells.length;
  if (!hasReturn || cells.every((cell) => cell === cells[0])) return middles;
  const aside = Math.min(unit * 0.3, 4);
  return middles.slice(1).flatMap((to, i) => {
    const from = middles[i];
    const distance = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    const [rx, ry] = [(-(to[1] - from[1]) / distance) * aside, ((to[0] - from[0]) / distance) * aside];
    return [[from[0] + rx, from[1] + ry], [to[0] + rx, to[1] + ry]];
  });
}

function glyph(cells, { isWhole = false } = {}) {
  const window = glyphWindow(cells, isWhole);
  const unit = glyphSize / window.n;
  const drawing = svg("svg", {
    class: "glyph", viewBox: `-1 -1 ${glyphSize + 2} ${glyphSize + 2}`, role: "img",
    "aria-label": cells.map(cellName).join(" to "),
  });
  drawing.append(svg("rect", { class: "land", width: glyphSize, height: glyphSize, rx: 4 }));
  if (window.n <= 12) {
    let lines = "";
    for (let i = 1; i < window.n; i++) lines += `M${i * unit} 0V${glyphSize}M0 ${i * unit}H${glyphSize}`;
    drawing.append(svg("path", { class: "cell-frame", d: lines }));
  }
  const points = routePoints(cells, window);
  if (cells.every((cell) => cell === cells[0])) {
    const radius = Math.max(unit * 0.3, 4);
    drawing.append(svg("circle", { class: "route", cx: points[0][0], cy: points[0][1], r: radius }));
    return titled(drawing, `stays in ${cellName(cells[0])}`);
  }
  const size = Math.max(Math.min(unit * 0.6, 8), 6);
  drawing.append(
    svg("path", { class: "route", d: `M${points.map((p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`).join("L")}` }),
    svg("circle", { class: "origin", cx: points[0][0], cy: points[0][1], r: 3.2 }),
    svg("path", { class: "tip", d: arrowTip(points.at(-2), points.at(-1), size) }),
  );
  return titled(drawing, cells.map(cellName).join(" to "));
}

// A bar of some share of its track.
function meter(kind, share) {
  const inside = html("i");
  inside.style.width = `${(Math.min(Math.max(share, 0), 1) * 100).toFixed(1)}%`;
  return html("div", { class: `meter ${kind}` }, inside);
}
