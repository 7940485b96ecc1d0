// Main flows as arrows: broader means more, hollow means on this side only.

const flowFrames = Object.fromEntries(kinds.map((kind) => [kind, {
  codes: unpack(source.flows[kind].frames.codes),
  counts: unpack(source.flows[kind].frames.counts),
  elsewhere: unpack(source.flows[kind].frames.elsewhere),
}]));

const listedFlows = 7;

// The main flows of one side as [code, count, count on the other side], of all time or up to a frame.
function flowsAt(kind, frame) {
  if (chosen("flow-time") === "whole") {
    const { codes, counts, elsewhere } = source.flows[kind].whole;
    return codes.map((code, i) => [code, counts[i], elsewhere[i]]);
  }
  const n = source.flows.n;
  const rows = [];
  for (let i = frame * n; i < (frame + 1) * n; i++) {
    const { codes, counts, elsewhere } = flowFrames[kind];
    if (counts[i] > 0) rows.push([codes[i], counts[i], elsewhere[i]]);
  }
  return rows;
}

// The middle of a block of cells, in the units of the map.
function blockMiddle(row, column) {
  const { block } = source.flows;
  const middle = (i) => (i * block + Math.min((i + 1) * block, side)) / 2 / side;
  return [middle(column) * mapWide, mapHigh - middle(row) * mapHigh];
}

// A block has the name of its lower left cell.
function blockName(row, column) {
  const { block } = source.flows;
  return cellName(row * block * side + column * block);
}

function endsOf(code) {
  const { across } = source.flows;
  const from = Math.floor(code / 9);
  const row = Math.floor(from / across);
  const column = from % across;
  return [[row, column], [row + Math.floor((code % 9) / 3) - 1, column + (code % 3) - 1]];
}

// An arrow that keeps to the right of its way, so that there and back stay apart.
function arrowShape(code, share) {
  const [[ax, ay], [bx, by]] = endsOf(code).map((place) => blockMiddle(...place));
  const distance = Math.hypot(bx - ax, by - ay);
  const [ux, uy] = [(bx - ax) / distance, (by - ay) / distance];
  const [rx, ry] = [-uy, ux];
  const room = Math.min(mapWide, mapHigh) / source.flows.across;
  const half = room * (0.014 + 0.07 * share);
  const head = Math.max(half * 2.1, room * 0.075);
  const aside = half + room * 0.05;
  const at = (along, across) =>
    `${(ax + ux * along + rx * (aside + across)).toFixed(1)} ${(ay + uy * along + ry * (aside + across)).toFixed(1)}`;
  const [start, end] = [distance * 0.16, distance * 0.84];
  const neck = end - Math.min(head * 1.25, (end - start) * 0.6);
  const corners = [
    at(start, -half), at(neck, -half), at(neck, -head), at(end, 0), at(neck, head), at(neck, half), at(start, half),
  ];
  return `M${corners.join("L")}Z`;
}

// The largest real flows with their counts on both sides, for those who want numbers.
function listFlows(lists, top) {
  const rows = lists.real.slice(0, listedFlows).map(([code, count, other]) => {
    const [from, to] = endsOf(code).map((place) => blockName(...place));
    const line = (kind, n) =>
      html("div", { class: "line" }, meter(kind, n / top), html("span", { text: figure(Math.round(n)) }));
    const name = html("span", { class: "name", text: `${from} \u2192 ${to}` });
    return html("li", {}, name, html("div", { class: "twin" }, line("real", count), line("synthetic", other)));
  });
  fillNamed("flow-list", rows);
}

function drawFlows(frame) {
  const lists = Object.fromEntries(kinds.map((kind) => [kind, flowsAt(kind, frame)]));
  const top = Math.max(1, ...kinds.flatMap((kind) => lists[kind].map(([, count]) => count)));
  const known = Object.fromEntries(kinds.map((kind) => [kind, new Set(lists[kind].map(([code]) => code))]));
  for (const kind of kinds) {
    const other = kind === "real" ? "synthetic" : "real";
    const map = emptyMap(`Main flows, ${kind}`);
    map.append(gridLines(source.flows.block));
    for (const [code, count, elsewhere] of [...lists[kind]].reverse()) {
      const alone = known[other].has(code) ? "" : " alone";
      const arrow = svg("path", { class: `arrow ${kind}${alone}`, d: arrowShape(code, count / top) });
      const [from, to] = endsOf(code).map((place) => blockName(...place));
      map.append(titled(arrow, `${from} to ${to}: ${figure(Math.round(count))} moves, ${other} ${figure(Math.round(elsewhere))}`));
    }
    document.getElementById(`flow-${kind}`).replaceChildren(map);
  }
  listFlows(lists, top);
  const shared = [...known.real].filter((code) => known.synthetic.has(code)).length;
  const most = Math.max(known.real.size, known.synthetic.size);
  document.getElementById("flow-read-out").replaceChildren(
    most ? html("b", { text: `${shared} of ${most}` }) : "Nobody moves between cells here.",
    most ? " are on both sides" : "",
  );
  document.getElementById("flow-scale").textContent = most ? `The broadest arrow is ${figure(top)} moves.` : "";
}

function startFlows() {
  const draw = () => drawFlows(player.frame);
  onChoice("flow-time", draw);
  draw();
  player.followers.push(() => chosen("flow-time") === "whole" || draw());
}
