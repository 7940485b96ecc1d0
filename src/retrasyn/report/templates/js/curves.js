// One figure per timestamp, over the whole time, with the slider's time marked.

const curveKinds = [
  { title: "Density error", unit: "divergence in nats, 0 is the same", lines: [["density_error", "single"]], digits: 4 },
  { title: "Transition error", unit: "divergence in nats, 0 is the same", lines: [["transition_error", "single"]], digits: 4 },
  { title: "Active users", unit: "points per timestamp", lines: [["real", "real"], ["synthetic", "synthetic"]] },
  { title: "Reports", unit: "reports per timestamp", lines: [["reports", "single"]] },
  { title: "Budget", unit: "epsilon per report", lines: [["epsilon", "single"]], digits: 4, changing: true },
];

function curvePath(values, x, y) {
  let path = "";
  let pen = "M";
  values.forEach((value, frame) => {
    if (value === null) pen = "M";
    else {
      path += `${pen}${x(frame).toFixed(1)} ${y(value).toFixed(1)}`;
      if (pen === "M" && (values[frame + 1] ?? null) === null) path += "h0.01";
      pen = "L";
    }
  });
  return path;
}

function meanOf(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function spell(value, digits) {
  if (value === null || value === undefined) return "nothing";
  return digits ? value.toFixed(digits) : figure(value);
}

function sayValues(kind, place, frame) {
  const parts = kind.lines.map(([key, style]) => {
    const line = html("span", { text: spell(source.curves[key][frame], kind.digits) });
    if (style !== "single") line.prepend(html("span", { class: `swatch ${style}` }));
    return line;
  });
  const mean = kind.digits && !kind.changing ? meanOf(source.curves[kind.lines[0][0]]) : null;
  if (mean !== null) parts.unshift(html("span", { class: "muted", text: `mean ${mean.toFixed(kind.digits)}` }));
  place.replaceChildren(...parts);
}

function drawCurve(kind, place, width) {
  const values = kind.lines.map(([key]) => source.curves[key]);
  const known = values.flat().filter((value) => value !== null);
  const top = Math.max(...known, 0) * 1.06 || 1;
  const height = 210;
  const { drawing, area, y } = frameChart(place, { width, height, label: `${kind.title} over time`, top });
  const x = (frame) => area.left + (nFrames > 1 ? frame / (nFrames - 1) : 0.5) * (area.right - area.left);
  for (const [frame, text] of timeMarks(Math.max(2, Math.floor(width / 72)))) {
    if (x(frame) <= area.right + 1) markBottom(drawing, area, x(frame), text);
  }
  kind.lines.forEach(([, style], i) => {
    const path = curvePath(values[i], x, y);
    drawing.append(svg("path", { class: `curve ${style}`, d: path }));
  });
  const mean = kind.digits && !kind.changing ? meanOf(values[0]) : null;
  if (mean !== null) {
    drawing.append(svg("line", { class: "mean", x1: area.left, x2: area.right, y1: y(mean), y2: y(mean) }));
  }
  const needle = svg("line", { class: "needle", y1: area.top, y2: area.bottom });
  const dots = kind.lines.map(([, style]) => svg("circle", { class: `needle-dot ${style}`, r: 5 }));
  drawing.append(needle, ...dots);
  const frameAt = (event) => {
    const edge = drawing.getBoundingClientRect();
    const share = (event.clientX - edge.left - area.left) / (area.right - area.left);
    return Math.min(Math.max(Math.round(share * (nFrames - 1)), 0), nFrames - 1);
  };
  drawing.addEventListener("click", (event) => goTo(frameAt(event)));
  const point = (frame) => {
    needle.setAttribute("x1", x(frame));
    needle.setAttribute("x2", x(frame));
    dots.forEach((dot, i) => {
      const value = values[i][frame];
      dot.setAttribute("visibility", value === null ? "hidden" : "visible");
      dot.setAttribute("cx", x(frame));
      dot.setAttribute("cy", y(value ?? 0));
    });
  };
  return point;
}

function startCurve(kind) {
  const now = html("span", { class: "curve-now" });
  const chart = html("div", { class: "chart" });
  const head = html("div", { class: "card-head" }, html("h3", { text: kind.title }), now);
  document.getElementById("curves").append(
    html("div", { class: "card curve-card" }, head, html("p", { class: "muted", text: kind.unit }), chart),
  );
  let point = () => {};
  drawWide(chart, (width) => {
    point = drawCurve(kind, chart, width);
    point(player.frame);
  });
  follow((frame) => {
    point(frame);
    sayValues(kind, now, frame);
  });
}

function startCurves() {
  for (const kind of curveKinds) {
    const values = source.curves[kind.lines[0][0]];
    if (!values) continue;
    if (kind.changing && new Set(values.filter((value) => value > 0)).size < 2) continue;
    startCurve(kind);
  }
}
