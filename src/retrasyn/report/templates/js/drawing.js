// Elements, colours and the shape of a map.

const svgSpace = document.getElementById("brand-mark").namespaceURI;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") node.textContent = value;
    else node.setAttribute(name, value);
  }
  for (const child of children) if (child) node.append(child);
  return node;
}

function html(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, children);
}

function titled(node, text) {
  node.append(svg("title", { text }));
  return node;
}

// Viridis in eleven steps: even in lightness, and told apart by every kind of eye.
const viridis = [
  [68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37],
];

function mix(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const part = place - low;
  const blend = stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * part));
  return `rgb(${blend.join(",")})`;
}

// Blue where synthetic points are missing, orange where there are too many.
function differenceStops() {
  if (isDark()) return [[86, 180, 233], [38, 47, 57], [255, 148, 71]];
  return [[0, 90, 156], [238, 241, 245], [200, 80, 0]];
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Height of a map over its width: that of the box on the ground, but never a sliver.
const mapAspect = (() => {
  const [x0, y0, x1, y1] = source.grid.box;
  const narrow = source.grid.degrees ? Math.cos((((y0 + y1) / 2) * Math.PI) / 180) : 1;
  return Math.min(Math.max((y1 - y0) / ((x1 - x0) * narrow), 0.6), 1.4);
})();

// Call draw(width) now, and again whenever the place changes its width.
function drawWide(place, draw) {
  let width = 0;
  const check = () => {
    const now = Math.round(place.clientWidth);
    if (now > 0 && now !== width) {
      width = now;
      draw(width);
    }
  };
  new ResizeObserver(check).observe(place);
  check();
}

// A canvas as sharp as the screen; returns its pen with the origin at the upper left.
function sharpen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

// An SVG map of the box, `across` blocks wide, with lines where they are not too many.
const mapWide = 400;
const mapHigh = mapWide * mapAspect;

function emptyMap(label) {
  const drawing = svg("svg", { viewBox: `0 0 ${mapWide} ${mapHigh}`, role: "img", "aria-label": label });
  drawing.append(svg("rect", { class: "land", width: mapWide, height: mapHigh, rx: 6 }));
  for (const [name, shape] of streetShapes) drawing.append(svg("path", { class: name, d: shape }));
  return drawing;
}

function gridLines(step) {
  const lines = [];
  for (let i = step; i < side; i += step) {
    const x = (i / side) * mapWide;
    const y = mapHigh - (i / side) * mapHigh;
    lines.push(`M${x.toFixed(1)} 0V${mapHigh}M0 ${y.toFixed(1)}H${mapWide}`);
  }
  return svg("path", { class: "cell-frame", d: lines.join("") });
}

function chosen(name) {
  return document.querySelector(`input[name="${name}"]:checked`).value;
}

function onChoice(name, act) {
  for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
    input.addEventListener("change", act);
  }
}
