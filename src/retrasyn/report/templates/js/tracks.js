// A sample of streams: real beside synthetic all at once, or those present at the slider's time.

const trailFrames = 8;
const pointed = { kind: null, track: null };

// A track has one point per frame, at the places `at` of its corners: streets turn between points.
const tracks = Object.fromEntries(kinds.map((kind) => {
  const sample = source.sample[kind];
  const [nPoints, begins, corners, x, y] = [sample.n_points, sample.begins, sample.corners, sample.x, sample.y].map(unpack);
  let [point, row] = [0, 0];
  return [kind, Array.from(nPoints, (n, i) => {
    const track = { begin: begins[i], corners: [], at: [] };
    for (const end = point + n; point < end; point++) {
      for (const last = row + corners[point]; row <= last; row++) track.corners.push([x[row] / 65535, 1 - y[row] / 65535]);
      track.at.push(track.corners.length - 1);
    }
    return track;
  })];
}));

function trackColour(i) {
  const light = ["#0072b2", "#d55e00", "#008060", "#aa3377", "#7a5c00", "#4b56b8", "#b3261e", "#3d6b00"];
  const dark = ["#56b4e9", "#ff9447", "#2fc79c", "#e895c4", "#e6c229", "#a3adff", "#ff8a80", "#a5d65a"];
  return (isDark() ? dark : light)[i % light.length];
}

// Without streets corners are rounded: only cells were reported, the exact points in them mean little.
function drawTrack(pen, points, width, height) {
  const at = points.map(([x, y]) => [x * width, y * height]);
  pen.beginPath();
  pen.moveTo(...at[0]);
  for (let i = 1; i < at.length - 1; i++) {
    if (streets) pen.lineTo(...at[i]);
    else pen.quadraticCurveTo(...at[i], (at[i][0] + at[i + 1][0]) / 2, (at[i][1] + at[i + 1][1]) / 2);
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
  if (streets) return drawStreets(pen, width, height);
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

function drawStill(pen, kind, width, height) {
  const still = tracks[kind].slice(0, source.sample[kind].n_still);
  const own = pointed.kind === kind ? pointed.track : null;
  const order = [...still.keys()].sort((a, b) => (a === own) - (b === own));
  for (const i of order) {
    const isPointed = i === own;
    pen.globalAlpha = isPointed ? 1 : own === null ? 0.7 : 0.18;
    pen.lineWidth = isPointed ? 3.5 : Math.min(2, 0.9 + width / 600);
    pen.strokeStyle = pen.fillStyle = trackColour(i);
    drawTrack(pen, still[i].corners, width, height);
    drawHead(pen, still[i].corners.at(-1), width, height, isPointed ? 5 : 3);
  }
  pen.globalAlpha = 1;
}

// The still stream nearest to a place, if one is near.
function nearestTrack(kind, x, y) {
  let best = null;
  let least = 0.03 ** 2;
  tracks[kind].slice(0, source.sample[kind].n_still).forEach(({ corners }, i) => {
    for (const [px, py] of corners) {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
  });
  return best;
}

function pointAtTrack(event, kind) {
  const edge = event.currentTarget.getBoundingClientRect();
  const isGone = event.type === "pointerleave";
  const track = isGone ? null : nearestTrack(kind, (event.clientX - edge.left) / edge.width, (event.clientY - edge.top) / edge.height);
  if (track === pointed.track && kind === pointed.kind) return;
  Object.assign(pointed, { kind, track });
  drawTracks();
}

function drawMoving(pen, kind, frame, width, height) {
  let present = 0;
  tracks[kind].forEach(({ begin, corners, at }, i) => {
    const now = frame - begin;
    if (now < 0 || now >= at.length) return;
    present += 1;
    pen.strokeStyle = pen.fillStyle = trackColour(i);
    pen.lineWidth = 2;
    for (let back = Math.min(trailFrames, now); back > 0; back--) {
      pen.globalAlpha = 0.75 * (1 - (back - 1) / trailFrames);
      drawTrack(pen, corners.slice(at[now - back], at[now - back + 1] + 1), width, height);
    }
    pen.globalAlpha = 1;
    drawHead(pen, corners[at[now]], width, height, 4.5);
  });
  return present;
}

// Real streams stand still: the page has only a few of them.
function drawTracks() {
  const isMoving = chosen("sample-mode") === "moving";
  document.getElementById("sample-panels").classList.toggle("alone", isMoving);
  let text = "Point at a stream. A dot marks its end.";
  for (const kind of kinds) {
    const place = document.getElementById(`sample-${kind}`);
    const width = place.clientWidth;
    if (!width) continue;
    const height = width * mapAspect;
    const pen = sharpen(place.firstChild, width, height);
    pen.lineJoin = pen.lineCap = "round";
    drawGround(pen, width, height);
    if (isMoving) text = `${drawMoving(pen, kind, player.frame, width, height)} of the sample present`;
    else drawStill(pen, kind, width, height);
  }
  const track = pointed.track === null || isMoving ? null : tracks[pointed.kind][pointed.track];
  if (track) text = `${pointed.kind}: from ${frameText(track.begin)} on, ${figure(track.at.length)} points`;
  document.getElementById("sample-read-out").textContent = text;
}

function startTracks() {
  for (const kind of kinds) {
    const place = document.getElementById(`sample-${kind}`);
    const canvas = html("canvas", { role: "img", "aria-label": `Paths of sampled ${kind} streams` });
    for (const name of ["pointermove", "pointerdown", "pointerleave"]) {
      canvas.addEventListener(name, (event) => pointAtTrack(event, kind));
    }
    place.append(canvas);
  }
  for (const kind of kinds) drawWide(document.getElementById(`sample-${kind}`), drawTracks);
  onChoice("sample-mode", drawTracks);
  player.followers.push(() => chosen("sample-mode") === "moving" && drawTracks());
}
