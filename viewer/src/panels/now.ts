// The view "Now": the figures of the timestamp shown, and its fullest cells.

import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { busiest, cellName } from "./cells.ts";
import { byId, show, write } from "./page.ts";
import { Ranking } from "./ranking.ts";

const HOTSPOTS = 10;

export function mountNow(store: Store, controls: Controls): void {
  const ranking = new Ranking(byId("hotspots"), (cell) => controls.selectCell(cell));
  store.watch(["frame", "cell", "status", "language"], (state) => {
    const { frame, status, cell } = state;
    const speech = speak(state);
    show("now-body", frame !== null);
    show("now-hint", frame === null);
    write("now-hint", speech.say("nowHint"));
    if (!frame) return;
    write("now-time", speech.moment(status, frame.t));
    write("n-points", speech.number(frame.nPoints));
    write("n-born", speech.number(frame.nBorn));
    write("n-ended", speech.number(frame.nEnded));
    write("n-reports", speech.number(frame.nReports));
    const rows = busiest(frame.counts, HOTSPOTS).map((cell) => {
      const n = frame.counts[cell]!;
      return { cell, n, name: cellName(cell, frame.side), text: speech.number(n) };
    });
    ranking.show(rows, cell, speech.say("none"));
  });
}
