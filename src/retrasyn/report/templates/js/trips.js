// Trips from first to last cell, and how streams are spread over lengths and durations.

// A list whose names share one width, so that its bars begin at one line.
function fillNamed(id, rows) {
  const names = rows.map((row) => row.querySelector(".name"));
  const longest = Math.max(0, ...names.map((name) => name.textContent.length));
  for (const name of names) name.style.width = `${longest}ch`;
  document.getElementById(id).replaceChildren(...rows);
}

function startTripList() {
  const { first, totals } = source.trips;
  const share = (row, i) => row[2 + i] / Math.max(totals[i], 1);
  const top = Math.max(...first.flatMap((row) => [share(row, 0), share(row, 1)]), 1e-9);
  const rows = first.map((row) => {
    const [from, to] = row;
    const lines = kinds.map((kind, i) =>
      html("div", { class: "line" }, meter(kind, share(row, i) / top), html("span", { text: percent(share(row, i)) })));
    const name = from === to ? `within ${cellName(from)}` : `${cellName(from)} to ${cellName(to)}`;
    const route = from === to ? [from, from] : [from, to];
    const label = html("span", { class: "name", text: name });
    return html("li", {}, glyph(route, { isWhole: true }), label, html("div", { class: "twin" }, ...lines));
  });
  fillNamed("trip-list", rows);
}

function powerText(exponent) {
  const value = 100 * 10 ** exponent;
  return `${value >= 1 ? value.toFixed(0) : +value.toFixed(Math.min(Math.max(-exponent - 2, 0), 8))} %`;
}

// Both shares on logarithmic axes; a trip that one side never makes stands on its edge.
function drawScatter(place, width) {
  const { scattered, totals } = source.trips;
  const points = scattered.map(([from, to, real, synthetic]) => ({ from, to, shares: [real / totals[0], synthetic / totals[1]] }));
  const known = points.flatMap((p) => p.shares).filter((share) => share > 0).map(Math.log10);
  known.sort((a, b) => a - b);
  const low = Math.min(Math.floor(known[Math.floor(known.length * 0.03)] ?? -1), -1);
  const high = Math.max(Math.ceil(Math.max(...known, -9) - 1e-9), low + 1);
  const height = Math.min(Math.max(width * 0.84, 260), 470);
  const format = (value) => (Number.isInteger(value) ? powerText(value) : "");
  const { drawing, area, y } = frameChart(place, { width, height: height + 18, label: "Share of every trip, real and synthetic", low, top: high, nTicks: high - low, format, left: 66 });
  const x = (value) => area.left + ((value - low) / (high - low)) * (area.right - area.left);
  for (let mark = low; mark <= high; mark++) markBottom(drawing, area, x(mark), powerText(mark));
  drawing.append(
    svg("line", { class: "mean", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }),
    svg("text", { class: "strong", x: area.right, y: area.bottom - 8, "text-anchor": "end", text: "real share" }),
    svg("text", { class: "strong", x: area.left + 6, y: area.top + 12, text: "synthetic share" }),
  );
  for (const { from, to, shares } of points) {
    const [px, py] = shares.map((share) => (share > 0 ? Math.max(Math.log10(share), low) : low));
    const dot = svg("circle", { class: "dot", cx: x(px).toFixed(1), cy: y(py).toFixed(1), r: 3.5 });
    drawing.append(titled(dot, `${cellName(from)} to ${cellName(to)}: real ${percent(shares[0])}, synthetic ${percent(shares[1])}`));
  }
}

function barName(histogram, i, isWhole) {
  const [low, high] = [histogram.edges[i], histogram.edges[i + 1]];
  if (histogram.open && i === histogram.real.length - 1) return `${figure(low)} or more`;
  if (!isWhole) return `${figure(low)} to ${figure(high)}`;
  return high - low === 1 ? `${low}` : `${low} to ${high - 1}`;
}

// Whole numbers name their bars; lengths have an axis, which ends where the last bar gathers the rest.
function markBars(drawing, area, histogram, x, isWhole) {
  const n = histogram.real.length;
  const nMarks = Math.max(Math.floor((area.right - area.left) / 56), 1);
  const nPlain = histogram.open ? n - 1 : n;
  const last = histogram.edges[nPlain];
  const end = histogram.open ? x(n - 0.5) - 44 : Infinity; // room for the word at the end
  if (isWhole) {
    const step = Math.ceil(nPlain / nMarks);
    for (let i = 0; i < nPlain && x(i + 0.5) < end; i += step) markBottom(drawing, area, x(i + 0.5), figure(histogram.edges[i]));
  } else if (last > 0) {
    const marks = ticks(0, last, nMarks).filter((mark) => x((mark / last) * nPlain) < end);
    for (const mark of marks) markBottom(drawing, area, x((mark / last) * nPlain), figure(mark));
  }
  if (histogram.open) markBottom(drawing, area, x(n - 0.5), "more");
}

// Twin bars of every bucket, as shares of either side.
function drawBars(place, width, histogram, label, isWhole) {
  const n = histogram.real.length;
  const totals = kinds.map((kind) => Math.max(histogram[kind].reduce((sum, count) => sum + count, 0), 1));
  const share = (kind, i) => histogram[kind][i] / totals[kinds.indexOf(kind)];
  const top = Math.max(...kinds.flatMap((kind) => histogram[kind].map((_, i) => share(kind, i)))) * 1.04 || 1;
  const format = (value) => `${+(value * 100).toFixed(2)} %`;
  const { drawing, area, y } = frameChart(place, { width, height: 250, label, top, format, right: 22 });
  const room = (area.right - area.left) / n;
  const x = (i) => area.left + i * room;
  for (let i = 0; i < n; i++) {
    kinds.forEach((kind, k) => {
      const value = share(kind, i);
      const bar = svg("rect", {
        class: `bar-${kind}`, x: (x(i) + room * (0.1 + 0.4 * k)).toFixed(2), width: (room * 0.4).toFixed(2),
        y: y(value).toFixed(2), height: Math.max(area.bottom - y(value), 0).toFixed(2),
      });
      drawing.append(titled(bar, `${barName(histogram, i, isWhole)}: ${kind} ${percent(value)}`));
    });
  }
  markBars(drawing, area, histogram, x, isWhole);
}

function startTrips() {
  startTripList();
  const scatter = document.getElementById("trip-scatter");
  drawWide(scatter, (width) => drawScatter(scatter, width));
  const length = document.getElementById("length-chart");
  drawWide(length, (width) => drawBars(length, width, source.lengths, "Travelled length", false));
  const duration = document.getElementById("duration-chart");
  drawWide(duration, (width) => drawBars(duration, width, source.durations, "Duration", true));
}
