// The figures of the page, and words for them.

const source = JSON.parse(document.getElementById("report-data").textContent);
const side = source.grid.side;
const nCells = side * side;
const nFrames = source.time.frames;
const kinds = ["real", "synthetic"];

function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.codes), (letter) => letter.charCodeAt(0));
  const codes = packed.kind === "uint16" ? new Uint16Array(bytes.buffer) : bytes;
  return packed.scale === 1 ? codes : Float64Array.from(codes, (code) => code * packed.scale);
}

// Number of timestamps of a frame; the last frame may be shorter.
function frameSize(frame) {
  return Math.min(source.time.width, source.time.n - frame * source.time.width);
}

function firstTimestamp(frame) {
  return source.time.first + frame * source.time.width;
}

// A number as people write it: thousands apart, no more digits than it carries.
function figure(value) {
  if (value === null || !Number.isFinite(value)) return "none";
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1000) return Math.round(value).toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 100 ? 4 : 3 });
}

function percent(share) {
  const value = share * 100;
  const digits = value >= 10 || value === 0 ? 0 : value >= 1 ? 1 : value >= 0.01 ? 2 : null;
  return `${digits === null ? Number(value.toPrecision(1)) : value.toFixed(digits)} %`;
}

// Columns have letters from the left, rows have numbers from below: A1, B1, ... like a chess board.
function columnName(column) {
  const letter = String.fromCharCode(65 + (column % 26));
  return column < 26 ? letter : columnName(Math.floor(column / 26) - 1) + letter;
}

function cellName(cell) {
  return columnName(cell % side) + (Math.floor(cell / side) + 1);
}

// A place in degrees, as finely as cells are told apart; axis 0 is the longitude, 1 the latitude.
function degrees(value, axis) {
  const { box } = source.grid;
  const digits = Math.ceil(-Math.log10((box[axis + 2] - box[axis]) / side));
  const letter = value < 0 ? "WS"[axis] : "EN"[axis];
  return `${Math.abs(value).toFixed(Math.min(Math.max(digits, 0), 6))}\u00b0 ${letter}`;
}

// Where the middle of a cell lies, if that is on the globe.
function placeOf(cell) {
  if (!source.grid.degrees) return "";
  const [x0, y0, x1, y1] = source.grid.box;
  const x = x0 + (((cell % side) + 0.5) / side) * (x1 - x0);
  const y = y0 + ((Math.floor(cell / side) + 0.5) / side) * (y1 - y0);
  return `, ${degrees(y, 1)} ${degrees(x, 0)}`;
}

function clockTime(t) {
  const clock = source.time.clock;
  return clock && new Date((clock.begin + t * clock.period) * 1000);
}

function clockText(t) {
  const time = clockTime(t);
  if (!time) return "";
  const text = time.toISOString();
  const period = source.time.clock.period;
  const end = period % 60 === 0 && source.time.clock.begin % 60 === 0 ? 16 : period >= 1 ? 19 : 23;
  const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  return `${days[time.getUTCDay()]} ${text.slice(0, 10)} ${text.slice(11, end)}`;
}

function frameText(frame) {
  const first = firstTimestamp(frame);
  const last = first + frameSize(frame) - 1;
  return first === last ? `t = ${first}` : `t = ${first} to ${last}`;
}
