// The view "Cell": how one cell fills and empties, and where its travellers come from and go.

import { api, type CellHistory, type Neighbour } from "../api.ts";
import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { about } from "../frame.ts";
import { speak } from "../texts/index.ts";
import { calledCell } from "./cells.ts";
import { mountChart } from "./chart.ts";
import { byId, press, show, write } from "./page.ts";
import { Query, stretch, tellTrouble } from "./query.ts";
import { Ranking } from "./ranking.ts";
import type { Tabs } from "./tabs.ts";

const PAUSE = 1000; // milliseconds between an answer and the next question, while time goes on

export function mountCell(store: Store, controls: Controls, tabs: Tabs): void {
  const chart = mountChart({ id: "cell-chart", title: "overTime", digits: 0 }, store, controls);
  const moves = mountChart({ id: "moves-chart", title: "movesOverTime", digits: 0 }, store, controls);
  const choose = (cell: number) => controls.selectCell(cell);
  const destinations = new Ranking(byId("destinations"), choose);
  const origins = new Ranking(byId("origins"), choose);
  let history: CellHistory | null = null;
  let opened: number | null = null; // the cell that was last gone to

  const query = new Query(
    (signal) => {
      const { cell, status, t, over } = store.now;
      const span = stretch(status, t)!;
      return api.cell(cell!, span.first, span.last, over, signal);
    },
    (answer) => {
      history = answer;
      draw();
    },
    (error) => tellTrouble("cell-trouble", error, speak(store.now)),
    PAUSE,
  );

  const draw = () => {
    const { t, n, inflow, outflow, n_band, inflow_band, outflow_band, destinations: to, origins: from } = history ?? EMPTY;
    const speech = speak(store.now);
    chart.show({ t, lines: [{ style: "single", values: n, band: n_band }] });
    moves.show({
      t,
      lines: [
        { style: "in", values: inflow, band: inflow_band, name: speech.say("inflow") },
        { style: "out", values: outflow, band: outflow_band, name: speech.say("outflow") },
      ],
    });
    const rows = (ranked: Neighbour[]) =>
      ranked.map(({ cell, n, low, high }) => ({ cell, n, name: calledCell(cell, store.now), text: speech.about({ n, low: low ?? n, high: high ?? n }) }));
    for (const [ranking, ranked] of [[destinations, to], [origins, from]] as const) {
      if (history) ranking.show(rows(ranked), null, speech.say("noMoves"));
      else ranking.clear();
    }
  };

  const isWanted = () => store.now.cell !== null && tabs.current === "cell" && stretch(store.now.status, 0) !== null;
  const isCovered = () => {
    const { t, status } = store.now;
    const span = stretch(status, t);
    return history?.cell === store.now.cell && history.t.includes(t) && history.t.at(-1) === span?.last;
  };

  press("cell-clear", () => controls.selectCell(null));
  tabs.watch(() => void (isWanted() && !isCovered() && query.refresh()));
  store.watch(["cell", "over"], ({ cell }) => {
    query.stop();
    show("cell-trouble", false);
    show("cell-body", cell !== null);
    show("cell-hint", cell === null);
    history = null;
    draw();
    if (cell === null) return void (opened = null);
    if (cell !== opened) tabs.open("cell");
    opened = cell;
    if (isWanted()) query.start();
  });
  store.watch(["t", "status"], () => void (isWanted() && !isCovered() && query.refresh()));
  store.watch(["cell", "frame", "names", "language", "status"], (state) => {
    const speech = speak(state);
    const { cell, frame } = state;
    if (cell === null) return;
    write("cell-name", speech.say("cellName", { cell: calledCell(cell, state) }));
    write("cell-range", frame ? speech.range(about(frame.cells, cell)) : "");
    write("cell-now", frame ? speech.about(about(frame.cells, cell)) : "–");
  });
  store.watch(["language", "names"], draw);
}

const EMPTY: Omit<CellHistory, "cell"> = {
  t: [],
  n: [],
  inflow: [],
  outflow: [],
  n_band: null,
  inflow_band: null,
  outflow_band: null,
  destinations: [],
  origins: [],
};
