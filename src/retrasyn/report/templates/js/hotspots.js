// The busiest cells: numbered on two maps, and joined by lines where both lists have them.

function drawHotMap(kind) {
  const map = emptyMap(`Hotspots, ${kind}`);
  map.append(gridLines(side > 16 ? side : 1));
  const { cells, counts } = source.hotspots[kind];
  const unit = [mapWide / side, mapHigh / side];
  const least = Math.max(Math.min(...unit) * 0.42, 9);
  [...cells.keys()].reverse().forEach((i) => {
    const radius = Math.min(least, 24) * Math.max(Math.sqrt(counts[i] / counts[0]), 0.62);
    const inside = (place, end) => Math.min(Math.max(place, radius), end - radius);
    const x = inside(((cells[i] % side) + 0.5) * unit[0], mapWide);
    const y = inside(mapHigh - (Math.floor(cells[i] / side) + 0.5) * unit[1], mapHigh);
    map.append(
      titled(svg("circle", { class: `hot ${kind}`, cx: x, cy: y, r: radius }), `${cellName(cells[i])}: ${figure(counts[i])} points`),
      svg("text", { class: "hot-number", x, y, "font-size": Math.max(radius * 0.95, 9), "pointer-events": "none", text: i + 1 }),
    );
  });
  document.getElementById(`hot-${kind}`).replaceChildren(map);
}

// A rank in its dot, the cell's name beside it, its share further out.
function slopeRow({ kind, x, y, rank, cell, count, total, elsewhere }) {
  const out = kind === "real" ? -1 : 1;
  const anchor = kind === "real" ? "end" : "start";
  const group = svg("g", {},
    svg("circle", { class: `hot ${kind}`, cx: x, cy: y, r: 11 }),
    svg("text", { class: "hot-number", x, y, text: rank }),
    svg("text", { class: "strong", x: x + out * 20, y: y + 4, "text-anchor": anchor, text: cellName(cell) }),
    svg("text", { x: x + out * 66, y: y + 4, "text-anchor": anchor, text: percent(count / total) }),
  );
  return titled(group, `${cellName(cell)}: ${figure(count)} points, rank ${elsewhere || "none"} on the other side`);
}

function drawSlope(place, width) {
  const { real, synthetic } = source.hotspots;
  const n = Math.max(real.cells.length, synthetic.cells.length);
  const step = 30;
  const height = n * step + 34;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Ranks of the busiest cells, real at the left, synthetic at the right" });
  const x = { real: 122, synthetic: width - 122 };
  const y = (i) => 40 + i * step;
  drawing.append(
    svg("text", { class: "strong", x: x.real + 11, y: 16, "text-anchor": "end", text: "Real" }),
    svg("text", { class: "strong", x: x.synthetic - 11, y: 16, text: "Synthetic" }),
  );
  real.cells.forEach((cell, i) => {
    const j = synthetic.cells.indexOf(cell);
    if (j < 0) return;
    const bend = (x.synthetic - x.real) / 2;
    const d = `M${x.real} ${y(i)}C${x.real + bend} ${y(i)} ${x.synthetic - bend} ${y(j)} ${x.synthetic} ${y(j)}`;
    drawing.append(svg("path", { class: i === j ? "slope-line same" : "slope-line", d }));
  });
  for (const kind of kinds) {
    const { cells, counts, total, elsewhere } = source.hotspots[kind];
    cells.forEach((cell, i) => {
      drawing.append(slopeRow({
        kind, x: x[kind], y: y(i), rank: i + 1, cell, count: counts[i], total, elsewhere: elsewhere[i],
      }));
    });
  }
  place.replaceChildren(drawing);
}

function startHotspots() {
  kinds.forEach(drawHotMap);
  const place = document.getElementById("slope");
  drawWide(place, (width) => drawSlope(place, width));
}
