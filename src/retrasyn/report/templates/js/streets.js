// Public streets under, or thin above, what a map shows; nothing where the run had none.

const streets = (() => {
  if (!source.streets) return null;
  const ends = unpack(source.streets.ends);
  const nMain = source.streets.n_main * 4;
  return { main: ends.subarray(0, nMain), others: ends.subarray(nMain) };
})();

// Draw them on a canvas of this size; main streets are bolder.
function drawStreets(pen, width, height, { ink = colour("street"), alpha = 1 } = {}) {
  if (!streets) return;
  pen.save();
  pen.strokeStyle = ink;
  pen.globalAlpha = alpha;
  pen.lineCap = "round";
  for (const [ends, bold] of [[streets.others, 1], [streets.main, 2]]) {
    pen.lineWidth = bold * Math.min(0.5 + width / 1600, 1);
    pen.beginPath();
    for (let i = 0; i < ends.length; i += 4) {
      pen.moveTo((ends[i] / 65535) * width, (1 - ends[i + 1] / 65535) * height);
      pen.lineTo((ends[i + 2] / 65535) * width, (1 - ends[i + 3] / 65535) * height);
    }
    pen.stroke();
  }
  pen.restore();
}

// The same as paths of an SVG map, put together once.
const streetShapes = (() => {
  if (!streets) return [];
  const at = (x, y) => `${((x / 65535) * mapWide).toFixed(1)} ${((1 - y / 65535) * mapHigh).toFixed(1)}`;
  return [["street", streets.others], ["street main", streets.main]].map(([name, ends]) => {
    let shape = "";
    for (let i = 0; i < ends.length; i += 4) shape += `M${at(ends[i], ends[i + 1])}L${at(ends[i + 2], ends[i + 3])}`;
    return [name, shape];
  });
})();
