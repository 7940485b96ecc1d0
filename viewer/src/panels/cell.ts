// The view "Cell": how one cell fills and empties, and where its travellers come from and go.

import { api, type CellHistory } from "../api.ts";
import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { cellName } from "./cells.ts";
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

  const query = new Query(
    (signal) => {
      const { cell, status, t } = store.now;
      const span = stretch(status, t)!;
      return api.cell(cell!, span.first, span.last, signal);
    },
    (answer) => {
      history = answer;
      draw();
    },
    (error) => tellTrouble("cell-trouble", error, speak(store.now)),
    PAUSE,
  );

  const draw = () => {
    const { t, n, inflow, outflow, destinations: to, origins: from } = history ?? EMPTY;
    const speech = speak(store.now);
    chart.show({ t, lines: [{ style: "single", values: n }] });
    moves.show({
      t,
      lines: [
        { style: "in", values: inflow, name: speech.say("inflow") },
        { style: "out", values: outflow, name: speech.say("outflow") },
      ],
    });
    const rows = (ranked: { cell: number; n: number }[]) =>
      ranked.map(({ cell, n }) => ({ cell, n, name: cellName(cell, store.now.status.grid), text: speech.number(n) }));
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
  store.watch(["cell"], ({ cell }) => {
    query.stop();
    show("cell-trouble", false);
    show("cell-body", cell !== null);
    show("cell-hint", cell === null);
    history = null;
    draw();
    if (cell === null) return;
    tabs.open("cell");
    if (isWanted()) query.start();
  });
  store.watch(["t", "status"], () => void (isWanted() && !isCovered() && query.refresh()));
  store.watch(["cell", "frame", "language", "status"], (state) => {
    const speech = speak(state);
    const { cell, frame } = state;
    if (cell === null) return;
    write("cell-name", speech.say("cellName", { cell: cellName(cell, state.status.grid) }));
    write("cell-now", frame ? speech.number(frame.counts[cell] ?? 0) : "–");
  });
  store.watch(["language"], draw);
}

const EMPTY: Omit<CellHistory, "cell"> = { t: [], n: [], inflow: [], outflow: [], destinations: [], origins: [] };
