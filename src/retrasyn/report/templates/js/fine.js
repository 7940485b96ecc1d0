// Density on a grid finer than that of the run, over the whole time, on one colour scale.

const fine = Object.fromEntries(kinds.map((kind) => [kind, unpack(source.fine[kind])]));

// Shares of all points, since the two sides need not have as many; a root, since a few squares have most.
const fineShares = Object.fromEntries(kinds.map((kind) => {
  const total = Math.max(fine[kind].reduce((sum, n) => sum + n, 0), 1);
  return [kind, Float64Array.from(fine[kind], (n) => n / total)];
}));
const fineTop = usualTop(Float64Array.from([...fineShares.real, ...fineShares.synthetic]), 0.998);

function paintFine(kind) {
  const place = document.getElementById(`fine-${kind}`);
  const width = place.clientWidth;
  if (!width) return;
  const height = width * mapAspect;
  const across = source.fine.side;
  const pen = sharpen(place.firstChild, width, height);
  pen.fillStyle = colour("soft");
  pen.fillRect(0, 0, width, height);
  fineShares[kind].forEach((share, square) => {
    if (!share) return;
    pen.fillStyle = mix(viridis, Math.sqrt(share / fineTop));
    const x = ((square % across) / across) * width;
    const y = height - ((Math.floor(square / across) + 1) / across) * height;
    pen.fillRect(x, y, width / across + 0.4, height / across + 0.4);
  });
  drawStreets(pen, width, height, { ink: "#ffffff", alpha: 0.28 });
}

function paintFineMaps() {
  for (const kind of kinds) paintFine(kind);
  paintRamp("legend-fine", viridis, ["0", `${percent(fineTop / 4)} of all points`, `${percent(fineTop)} or more`]);
}

function startFine() {
  for (const kind of kinds) {
    const place = document.getElementById(`fine-${kind}`);
    place.append(html("canvas", { role: "img", "aria-label": `Density in ${source.fine.side} x ${source.fine.side} squares, ${kind}` }));
    drawWide(place, () => paintFine(kind));
  }
  paintFineMaps();
}
