// Zones instead of cells: how many are in each, and the trips from the one that is chosen.

import { api } from "../api.ts";
import type { Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { byId, show, write } from "./page.ts";
import { Query, stretch, tellTrouble } from "./query.ts";
import { Ranking } from "./ranking.ts";

const PAUSE = 500; // milliseconds between an answer and the next question, while time goes on
const LISTED = 12;

export function mountZones(store: Store): void {
  const ranking = new Ranking(byId("zones"), (place) => {
    const zone = listed()[place]?.zone ?? null;
    store.set({ zone: zone === store.now.zone ? null : zone });
  });
  const destinations = new Ranking(byId("zone-trips"), () => undefined);
  const listed = () => [...store.now.zones].sort((a, b) => b.n - a.n).slice(0, LISTED);
  const tell = (error: Parameters<typeof tellTrouble>[1]) => tellTrouble("zones-trouble", error, speak(store.now));

  const counts = new Query(
    (signal) => {
      const { info, t, over } = store.now;
      return api.zoneCounts(info.zones!, Math.max(t - over + 1, 0), t, signal);
    },
    (zones) => store.set({ zones }),
    tell,
    PAUSE,
  );
  const trips = new Query(
    (signal) => {
      const { info, status, t } = store.now;
      const span = stretch(status, t)!;
      return api.trips(info.zones!, span.first, span.last, signal);
    },
    (found) => store.set({ trips: found }),
    tell,
  );

  store.watch(["t", "over", "layers", "frame"], ({ layers, frame, info }) => {
    if (!info.zones || !layers.zones) return counts.stop();
    if (frame) counts.refresh();
  });
  store.watch(["zone"], ({ zone, info }) => {
    if (zone === null || !info.zones) trips.stop();
    else trips.start();
  });
  store.watch(["layers", "zones", "zone", "trips", "language"], (state) => {
    const { layers, zone } = state;
    const speech = speak(state);
    show("zones-body", layers.zones);
    show("hotspots-body", !layers.zones);
    const rows = listed().map((found, place) => ({ cell: place, name: found.zone, n: found.n, text: speech.about(found) }));
    ranking.show(rows, zone === null ? null : listed().findIndex((found) => found.zone === zone), speech.say("none"));
    show("zone-body", zone !== null);
    write("zone-name", speech.say("tripsFrom", { zone: zone ?? "" }));
    const own = state.trips.filter(({ origin }) => origin === zone).sort((a, b) => b.n - a.n);
    const shown = own.slice(0, LISTED).map((found, place) => ({ cell: place, name: found.destination, n: found.n, text: speech.about(found) }));
    if (zone !== null && state.trips.length) destinations.show(shown, null, speech.say("noMoves"));
    else destinations.clear();
  });
}
