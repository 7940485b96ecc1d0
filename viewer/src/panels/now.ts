// The view "Now": the figures of the timestamp shown, and its fullest cells.

import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { about, BORN, ENDED, POINTS } from "../frame.ts";
import { speak } from "../texts/index.ts";
import { busiest, calledCell } from "./cells.ts";
import { byId, show, write } from "./page.ts";
import { Ranking } from "./ranking.ts";

const HOTSPOTS = 10;

export function mountNow(store: Store, controls: Controls): void {
  const ranking = new Ranking(byId("hotspots"), (cell) => controls.selectCell(cell));
  store.watch(["frame", "cell", "names", "status", "language"], (state) => {
    const { frame, status, cell } = state;
    const speech = speak(state);
    show("now-body", frame !== null);
    show("now-hint", frame === null);
    write("now-hint", speech.say("nowHint"));
    if (!frame) return;
    const average = frame.rounds > 1 ? ` · ${speech.say("averageOf", { n: speech.number(frame.rounds) })}` : "";
    write("now-time", speech.moment(status, frame.t) + average);
    write("now-about", speech.say(frame.replicas ? "legendAbout" : "legendUnknown"));
    for (const [id, place] of [["n-points", POINTS], ["n-born", BORN], ["n-ended", ENDED]] as const) {
      write(id, speech.about(about(frame.totals, place)));
    }
    write("n-reports", speech.number(frame.nReports));
    const rows = busiest(frame.cells.n, HOTSPOTS).map((cell) => {
      const found = about(frame.cells, cell);
      return { cell, n: found.n, name: calledCell(cell, state), text: speech.about(found) };
    });
    ranking.show(rows, cell, speech.say("none"));
  });
}
