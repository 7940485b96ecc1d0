// A sample of synthetic streams: all at once, or those present at the slider's time with a trail.

const trailFrames = 8;
const pointed = { track: null };

const tracks = (() => {
  const { sample } = source;
  const [nPoints, begins, x, y] = [sample.n_points, sample.begins, sample.x, sample.y].map(unpack);
  let row = 0;
  return Array.from(nPoints, (n, i) => {
    const track = { begin: begins[i], points: [] };
    for (const end = row + n; row < end; row++) track.points.push([x[row] / 65535, 1 - y[row] / 65535]);
    return track;
  });
})();

function trackColour(i) {
  const light = ["#0072b2", "#d55e00", "#008060", "#aa3377", "#7a5c00", "#4b56b8", "#b3261e", "#3d6b00"];
  const dark = ["#56b4e9", "#ff9447", "#2fc79c", "#e895c4", "#e6c229", "#a3adff", "#ff8a80", "#a5d65a"];
  return (isDark() ? dark : light)[i % light.length];
}

// Corners are rounded, since only cells were reported: the exact points in them mean little.
function drawTrack(pen, points, width, height) {
  const at = points.map(([x, y]) => [x * width, y * height]);
  pen.beginPath();
  pen.moveTo(...at[0]);
  for (let i = 1; i < at.length - 1; i++) {
    pen.quadraticCurveTo(...at[i], (at[i][0] + at[i + 1][0]) / 2, (at[i][1] + at[i + 1][1]) / 2);
  }
  pen.lineTo(...at.at(-1));
  pen.stroke();
}

function drawHead(pen, [x, y], width, height, radius) {
  pen.beginPath();
  pen.arc(x * width, y * height, radius, 0, 2 * Math.PI);
  pen.fill();
}

function drawGround(pen, width, height) {
  pen.fillStyle = colour("soft");
  pen.fillRect(0, 0, width, height);
  pen.strokeStyle = colour("grid");
  pen.lineWidth = side > 24 ? 0.25 : 0.6;
  pen.beginPath();
  for (let i = 1; i < side; i++) {
    pen.moveTo((i / side) * width, 0);
    pen.lineTo((i / side) * width, height);
    pen.moveTo(0, (i / side) * height);
    pen.lineTo(width, (i / side) * height);
  }
  pen.stroke();
}

function drawStill(pen, width, height) {
  const still = tracks.slice(0, source.sample.n_still);
  const order = [...still.keys()].sort((a, b) => (a === pointed.track) - (b === pointed.track));
  for (const i of order) {
    const isPointed = i === pointed.track;
    pen.globalAlpha = isPointed ? 1 : pointed.track === null ? 0.6 : 0.18;
    pen.lineWidth = isPointed ? 3 : Math.min(1.4, 0.6 + width / 900);
    pen.strokeStyle = pen.fillStyle = trackColour(i);
    drawTrack(pen, still[i].points, width, height);
    drawHead(pen, still[i].points.at(-1), width, height, isPointed ? 5 : 3);
  }
  pen.globalAlpha = 1;
  return still.length;
}

// The still stream nearest to a place, if one is near.
function nearestTrack(x, y) {
  let best = null;
  let least = 0.03 ** 2;
  tracks.slice(0, source.sample.n_still).forEach(({ points }, i) => {
    for (const [px, py] of points) {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
  });
  return best;
}

function pointAtTrack(event) {
  const edge = event.currentTarget.getBoundingClientRect();
  const isGone = event.type === "pointerleave";
  const track = isGone ? null : nearestTrack((event.clientX - edge.left) / edge.width, (event.clientY - edge.top) / edge.height);
  if (track === pointed.track) return;
  pointed.track = track;
  drawTracks();
}

function drawMoving(pen, frame, width, height) {
  let present = 0;
  tracks.forEach(({ begin, points }, i) => {
    const now = frame - begin;
    if (now < 0 || now >= points.length) return;
    present += 1;
    pen.strokeStyle = pen.fillStyle = trackColour(i);
    pen.lineWidth = 2;
    for (let back = Math.min(trailFrames, now); back > 0; back--) {
      pen.globalAlpha = 0.75 * (1 - (back - 1) / trailFrames);
      drawTrack(pen, [points[now - back], points[now - back + 1]], width, height);
    }
    pen.globalAlpha = 1;
    drawHead(pen, points[now], width, height, 4.5);
  });
  return present;
}

function drawTracks() {
  const place = document.getElementById("sample-map");
  const width = place.clientWidth;
  if (!width) return;
  const height = width * mapAspect;
  const pen = sharpen(place.firstChild, width, height);
  pen.lineJoin = pen.lineCap = "round";
  drawGround(pen, width, height);
  const isMoving = chosen("sample-mode") === "moving";
  const n = isMoving ? drawMoving(pen, player.frame, width, height) : drawStill(pen, width, height);
  const track = tracks[pointed.track];
  const text = isMoving ? `${n} of the sample present` : track ? `from ${frameText(track.begin)} on, ${figure(track.points.length)} points` : "Point at a stream. A dot marks its end.";
  document.getElementById("sample-read-out").textContent = text;
}

function startTracks() {
  const place = document.getElementById("sample-map");
  const canvas = html("canvas", { role: "img", "aria-label": "Paths of sampled synthetic streams" });
  for (const kind of ["pointermove", "pointerdown", "pointerleave"]) canvas.addEventListener(kind, pointAtTrack);
  place.append(canvas);
  onChoice("sample-mode", drawTracks);
  drawWide(place, drawTracks);
  player.followers.push(() => chosen("sample-mode") === "moving" && drawTracks());
}
