// What screen readers are told without being asked: few things, and important ones.

import type { Connection, Store } from "../store.ts";
import { about } from "../frame.ts";
import { speak } from "../texts/index.ts";
import { calledCell } from "./cells.ts";
import { write } from "./page.ts";

export const sayAloud = (text: string) => write("said", text);

export function mountSaid(store: Store): void {
  let before: Connection = store.now.connection;
  store.watch(["connection"], (state) => {
    const speech = speak(state);
    if (state.connection === "stale") sayAloud(speech.say("saidStale"));
    if (state.connection === "live" && before === "stale") sayAloud(speech.say("saidBack"));
    before = state.connection;
  });
  store.watch(["cell"], (state) => {
    const { cell, frame } = state;
    if (cell === null) return;
    const speech = speak(state);
    const n = frame ? speech.about(about(frame.cells, cell)) : "–";
    sayAloud(speech.say("saidCell", { cell: calledCell(cell, state), n }));
  });
}
