// The most frequent patterns as cards: a drawing, and both counts.

const shownReal = 8;
const shownSynthetic = 4;

function twinLine(kind, [rank, count], top) {
  const place = rank ? `rank ${figure(rank)}` : "never";
  return [
    html("div", { class: "line" }, html("span", { text: figure(count) }), html("span", { class: "muted", text: place })),
    meter(kind, count / top),
  ];
}

function patternCard(row, top) {
  const twin = html("div", { class: "twin" }, ...kinds.flatMap((kind) => twinLine(kind, row[kind], top)));
  return html("li", {}, glyph(row.cells), twin);
}

function byRank(kind) {
  return (a, b) => a[kind][0] - b[kind][0];
}

function drawPatterns() {
  const length = chosen("pattern-length");
  const rows = source.patterns.rows.filter((row) => length === "all" || row.cells.length === Number(length));
  const ofReal = rows.filter((row) => row.real[0]).sort(byRank("real")).slice(0, shownReal);
  const ofSynthetic = rows.filter((row) => row.synthetic[0]).sort(byRank("synthetic"));
  const ahead = ofSynthetic.slice(0, shownReal).filter((row) => !ofReal.includes(row)).slice(0, shownSynthetic);
  const top = Math.max(1, ...[...ofReal, ...ahead].flatMap((row) => kinds.map((kind) => row[kind][1])));
  const lists = { "patterns-real": ofReal, "patterns-synthetic": ahead };
  for (const [id, list] of Object.entries(lists)) {
    const text = id === "patterns-real" ? "There is none of this length." : ofSynthetic.length ? "None: the first are the same." : "There is none of this length.";
    const cards = list.map((row) => patternCard(row, top));
    document.getElementById(id).replaceChildren(...(cards.length ? cards : [html("li", { class: "none", text })]));
  }
}

function startPatterns() {
  onChoice("pattern-length", drawPatterns);
  drawPatterns();
}
