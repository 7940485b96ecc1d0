// Density side by side, on one colour scale, with a reading for every cell.

const density = { real: unpack(source.density.real), synthetic: unpack(source.density.synthetic) };
// Standard errors of synthetic points per timestamp; 0 where unknown, null where none are known.
const errors = source.errors && unpack(source.errors);
const reading = { cell: null };
const mapPanels = [];

function perTimestamp(kind, frame, cell) {
  return density[kind][frame * nCells + cell] / frameSize(frame);
}

function errorOf(frame, cell) {
  return errors ? errors[frame * nCells + cell] / 1000 : 0;
}

// What nearly all values stay below: one extreme moment shall not darken all others.
function usualTop(values, part) {
  const known = values.filter((value) => value > 0).sort();
  return known.length ? known[Math.min(Math.ceil(known.length * part), known.length) - 1] : 0;
}

function limits(first, last, part) {
  const n = (last - first) * nCells;
  const values = new Float64Array(2 * n);
  const gaps = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const frame = first + Math.floor(i / nCells);
    const [real, synthetic] = kinds.map((kind) => perTimestamp(kind, frame, i % nCells));
    values[i] = real;
    values[n + i] = synthetic;
    gaps[i] = Math.abs(synthetic - real);
  }
  return { top: usualTop(values, part), gap: usualTop(gaps, part), isCut: part < 1 };
}

const wholeTime = limits(0, nFrames, 0.998);

// What colours mean at a frame: limits of the values, and what depends on light or dark.
function scales(frame) {
  const extent = chosen("scale") === "whole" ? wholeTime : limits(frame, frame + 1, 1);
  return { ...extent, empty: colour("soft"), stops: differenceStops() };
}

// The colour of a cell in one of the three maps; nobody there has a colour of its own.
function cellColour(what, frame, cell, { top, gap, empty, stops }) {
  if (what !== "difference") {
    const value = perTimestamp(what, frame, cell);
    return value > 0 ? mix(viridis, value / top) : empty;
  }
  const missing = perTimestamp("synthetic", frame, cell) - perTimestamp("real", frame, cell);
  return mix(stops, gap > 0 ? (missing / gap + 1) / 2 : 0.5);
}

const labelRoom = source.grid.degrees ? 32 : 18;

// Where the cells lie in a map of this width: room for names, and degrees, at the left and below.
function mapFrame(width) {
  const wide = width - labelRoom;
  return { left: labelRoom, wide, high: wide * mapAspect, height: wide * mapAspect + labelRoom };
}

function paintMap({ what, canvas, place }, frame, scale = scales(frame)) {
  const width = place.clientWidth;
  if (!width) return;
  const { left, wide, high, height } = mapFrame(width);
  const pen = sharpen(canvas, width, height);
  const gap = wide / side > 12 ? 1 : 0;
  for (let cell = 0; cell < nCells; cell++) {
    const x = left + ((cell % side) / side) * wide;
    const y = high - ((Math.floor(cell / side) + 1) / side) * high;
    pen.fillStyle = cellColour(what, frame, cell, scale);
    pen.fillRect(x, y, wide / side - gap + (gap ? 0 : 0.5), high / side - gap + (gap ? 0 : 0.5));
    if (what === "synthetic" && isVague(frame, cell)) strikeCell(pen, x, y, wide / side - gap, high / side - gap);
  }
  if (streets) pen.drawImage(streetPicture(wide, high), left, 0, wide, high);
  nameEdges(pen, left, wide, high);
  if (reading.cell !== null) ringCell(pen, left, wide, high);
}

// Whether so few points lie within two standard errors of none.
function isVague(frame, cell) {
  return perTimestamp("synthetic", frame, cell) < 2 * errorOf(frame, cell);
}

function strikeCell(pen, x, y, wide, high) {
  for (const [ink, width] of [["#000000", 2.5], ["#ffffff", 1]]) {
    pen.strokeStyle = ink;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x + wide * 0.3, y + high * 0.7);
    pen.lineTo(x + wide * 0.7, y + high * 0.3);
    pen.stroke();
  }
}

// Streets above the cells, drawn once for every size: the maps change with every timestamp.
const streetPictures = new Map();

function streetPicture(wide, high) {
  const key = `${Math.round(wide)} ${Math.round(high)}`;
  if (!streetPictures.has(key)) {
    const canvas = document.createElement("canvas");
    drawStreets(sharpen(canvas, wide, high), wide, high, { ink: "#ffffff", alpha: 0.3 });
    streetPictures.set(key, canvas);
  }
  return streetPictures.get(key);
}

function nameEdges(pen, left, wide, high) {
  const step = Math.ceil(side / Math.max(Math.floor(wide / 26), 1));
  pen.fillStyle = colour("muted");
  pen.font = "11px system-ui, sans-serif";
  for (let i = 0; i < side; i += step) {
    const middle = (i + 0.5) / side;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.fillText(String(i + 1), left - 5, high - middle * high);
    pen.textBaseline = "top";
    pen.textAlign = "center";
    pen.fillText(columnName(i), left + middle * wide, high + 5);
  }
  if (source.grid.degrees) nameDegrees(pen, left, wide, high);
}

// The degrees of all four edges.
function nameDegrees(pen, left, wide, high) {
  const [x0, y0, x1, y1] = source.grid.box;
  pen.textAlign = "left";
  pen.fillText(degrees(x0, 0), left, high + 19);
  pen.textAlign = "right";
  pen.fillText(degrees(x1, 0), left + wide, high + 19);
  pen.save();
  pen.rotate(-Math.PI / 2);
  pen.fillText(degrees(y1, 1), 0, 0);
  pen.textAlign = "left";
  pen.fillText(degrees(y0, 1), -high, 0);
  pen.restore();
}

function ringCell(pen, left, wide, high) {
  const x = left + ((reading.cell % side) / side) * wide;
  const y = high - ((Math.floor(reading.cell / side) + 1) / side) * high;
  for (const [line, width] of [["#000", 4], ["#fff", 2]]) {
    pen.strokeStyle = line;
    pen.lineWidth = width;
    pen.strokeRect(x + 1, y + 1, wide / side - 2, high / side - 2);
  }
}

function paintMaps(frame = player.frame) {
  const scale = scales(frame);
  for (const panel of mapPanels) paintMap(panel, frame, scale);
  const { top, gap, isCut, stops } = scale;
  const more = isCut ? " or more" : "";
  paintRamp("legend-density", viridis, ["0", figure(top / 2), `${figure(top)}${more}`]);
  paintRamp("legend-difference", stops, [`\u2212${figure(gap)}`, "0", `+${figure(gap)}`]);
  readCell(frame);
}

function paintRamp(id, stops, ends) {
  const place = document.getElementById(id);
  if (!place.firstChild) place.append(html("canvas", { "aria-hidden": "true" }), html("div", { class: "ends" }));
  const pen = sharpen(place.firstChild, 240, 12);
  for (let i = 0; i < 240; i++) {
    pen.fillStyle = mix(stops, i / 239);
    pen.fillRect(i, 0, 1.5, 12);
  }
  place.lastChild.replaceChildren(...ends.map((text) => html("span", { text })));
}

function readCell(frame) {
  const place = document.getElementById("read-out");
  if (reading.cell === null) return;
  const [real, synthetic] = kinds.map((kind) => perTimestamp(kind, frame, reading.cell));
  const gap = synthetic - real;
  const error = errorOf(frame, reading.cell);
  const about = error > 0 ? ` \u00b1 ${figure(error)}` : "";
  const share = real > 0 ? `, ${gap < 0 ? "" : "+"}${((gap / real) * 100).toFixed(0)} %` : "";
  place.replaceChildren(
    html("b", { text: `Cell ${cellName(reading.cell)}` }),
    ` (number ${reading.cell}${placeOf(reading.cell)}): real ${figure(real)}, synthetic ${figure(synthetic)}${about}${share}`,
  );
}

function chooseCell(cell) {
  if (cell === reading.cell) return;
  reading.cell = cell;
  paintMaps();
}

function pointAt(event, { canvas, place }) {
  const { left, wide, high } = mapFrame(place.clientWidth);
  const edge = canvas.getBoundingClientRect();
  const column = Math.floor(((event.clientX - edge.left - left) / wide) * side);
  const row = Math.floor(((high - (event.clientY - edge.top)) / high) * side);
  if (column >= 0 && column < side && row >= 0 && row < side) chooseCell(row * side + column);
}

function walk(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  const cell = reading.cell ?? 0;
  const column = Math.min(Math.max((cell % side) + (reading.cell === null ? 0 : step[0]), 0), side - 1);
  const row = Math.min(Math.max(Math.floor(cell / side) + (reading.cell === null ? 0 : step[1]), 0), side - 1);
  chooseCell(row * side + column);
}

function startMaps() {
  const names = { real: "Real density", synthetic: "Synthetic density", difference: "Synthetic minus real density" };
  for (const what of ["real", "synthetic", "difference"]) {
    const place = document.getElementById(`map-${what}`);
    const canvas = html("canvas", {
      tabindex: 0, role: "application", "aria-label": `${names[what]}. The arrow keys choose a cell to read.`,
    });
    place.append(canvas);
    const panel = { what, canvas, place };
    mapPanels.push(panel);
    canvas.addEventListener("pointermove", (event) => pointAt(event, panel));
    canvas.addEventListener("pointerdown", (event) => pointAt(event, panel));
    canvas.addEventListener("keydown", walk);
    drawWide(place, () => paintMap(panel, player.frame));
  }
  onChoice("scale", () => paintMaps());
  follow(paintMaps);
}
