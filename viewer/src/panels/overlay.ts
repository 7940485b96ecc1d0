// What lies on the map: layers, zoom, the legend, and words for those who do not see it.

import type { Status } from "../api.ts";
import type { Controls, Legend } from "../controls.ts";
import type { Hover, Layers, State, Store } from "../store.ts";
import { type About, about, POINTS } from "../frame.ts";
import { hasClock, speak } from "../texts/index.ts";
import { busiest, calledCell } from "./cells.ts";
import { hasReceipt } from "./privacy.ts";
import { all, byId, make, press, show, write } from "./page.ts";

const MANY = 10_000; // from here on a mark at the ramp is too long
const ROOMY = "(min-width: 70rem)";

export function mountLayers(store: Store): void {
  byId<HTMLDetailsElement>("layers").open = matchMedia(ROOMY).matches;
  const boxes = all<HTMLInputElement>("[data-layer]");
  for (const box of boxes) {
    const layer = box.dataset.layer as keyof Layers;
    box.addEventListener("change", () => store.set({ layers: { ...store.now.layers, [layer]: box.checked } }));
  }
  store.watch(["layers"], ({ layers }) => {
    for (const box of boxes) box.checked = layers[box.dataset.layer as keyof Layers];
    byId("maps").classList.toggle("beside", layers.real);
    if (layers.real) byId<HTMLDetailsElement>("layers").open = false; // it would cover a corner of the city
  });
  store.watch(["info"], ({ info, status }) => {
    const has = {
      roads: info.roads,
      zones: info.zones !== null,
      simulation: info.mode === "simulation",
      campaign: info.mode === "campaign",
      unfolding: info.unfolds,
      receipt: hasReceipt(status),
    };
    for (const place of all("[data-only]")) place.hidden = !has[place.dataset.only as keyof typeof has];
    write("attribution", info.attribution);
    show("attribution", Boolean(info.attribution));
  });
}

const ROUNDS = 10; // an average is over so many where an hour has no meaning
const MOST_ROUNDS = 120; // that the server averages

export function roundsOfHour(status: Status): number {
  const rounds = Math.round(3600 / status.period);
  return hasClock(status) && rounds >= 2 && rounds <= MOST_ROUNDS ? rounds : ROUNDS;
}

export function mountNumbers(store: Store): void {
  const select = byId<HTMLSelectElement>("over");
  const slider = byId<HTMLInputElement>("opacity");
  select.addEventListener("change", () => store.set({ over: Number(select.value) }));
  slider.addEventListener("input", () => store.set({ opacity: Number(slider.value) }));
  store.watch(["language"], (state) => {
    const speech = speak(state);
    const rounds = roundsOfHour(state.status);
    const isHour = hasClock(state.status) && rounds * state.status.period === 3600;
    const words = { 1: speech.say("overRound"), [rounds]: isHour ? speech.say("overHour") : speech.say("overRounds", { n: rounds }) };
    select.replaceChildren(...Object.entries(words).map(([value, text]) => Object.assign(make("option", "", text), { value })));
    select.value = String(state.over);
  });
  store.watch(["over"], ({ over }) => void (select.value = String(over)));
  store.watch(["opacity"], ({ opacity }) => void (slider.value = String(opacity)));
}

function under({ cell, zone, real }: Hover, state: State): (About & { name: string }) | null {
  const found = state.zones.find((one) => one.zone === zone);
  if (found) return { ...found, name: found.zone };
  const frame = real ? state.realFrame : state.frame;
  return frame && cell !== null ? { ...about(frame.cells, cell), name: calledCell(cell, state) } : null;
}

export function mountTip(store: Store): void {
  const tip = byId("tip");
  store.watch(["hover", "frame", "realFrame", "zones", "names", "drawing", "language"], (state) => {
    const { hover } = state;
    const found = hover && under(hover, state);
    tip.hidden = !found || state.drawing;
    if (!hover || !found) return;
    write("tip", `${found.name}: ${speak(state).about(found)}`);
    const right = hover.x > innerWidth / 2; // beside the pointer, where there is more room
    tip.style.translate = `calc(${hover.x}px + ${right ? "-100% - 14px" : "14px"}) calc(${hover.y}px - 100% - 8px)`;
  });
}

export function mountZoom(controls: Controls): void {
  press("zoom-in", () => controls.zoomIn());
  press("zoom-out", () => controls.zoomOut());
  press("fit", () => controls.fit());
}

export function mountLegend(store: Store, controls: Controls): void {
  const draw = ({ max, stops }: Legend) => {
    byId("ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    // On a ramp of square roots a quarter of the most stands in the middle.
    const marks = [0, ...(max < 4 ? [] : [max / 4]), max].map((n) => make("span", "", n < MANY ? speak(store.now).number(n, 1) : speak(store.now).short(n)));
    byId("ramp-marks").replaceChildren(...marks);
  };
  controls.watchLegend(draw);
  store.watch(["language", "theme"], () => draw(controls.legend()));
  store.watch(["layers", "frame", "language"], (state) => {
    show("legend", state.layers.density && state.frame !== null);
    const { real, zones } = state.layers;
    write("legend-name", speak(state).say(zones ? "legendZones" : real ? "legendBoth" : "legend"));
    const known = Boolean(state.frame?.replicas);
    for (const id of ["legend-hatched", "legend-about"]) show(id, known);
    show("legend-flows", known && state.layers.flows);
    show("legend-unknown", !known);
  });
}

export function mountSummary(store: Store): void {
  store.watch(["frame", "status", "language"], (state) => {
    const { frame, status } = state;
    const speech = speak(state);
    for (const [id, word] of [["map", "mapName"], ["real-map", "realMapName"]] as const) {
      const canvas = byId(id).querySelector("canvas");
      canvas?.setAttribute("aria-label", speech.say(word));
      if (id === "map") canvas?.setAttribute("aria-describedby", "map-summary");
    }
    const [most] = frame ? busiest(frame.cells.n, 1) : [];
    write(
      "map-summary",
      frame
        ? speech.say("mapSummary", {
            time: speech.moment(status, frame.t),
            n: speech.about(about(frame.totals, POINTS)),
            cell: most === undefined ? speech.say("none") : calledCell(most, state),
            most: most === undefined ? speech.number(0) : speech.about(about(frame.cells, most)),
          })
        : speech.say("mapEmpty"),
    );
    const empty = status.newest_release === null;
    show("map-note", empty);
    if (empty) write("map-note", emptyNote(status.next_round_in));

    function emptyNote(seconds: number): string {
      const next = seconds > 0 ? ` ${speech.say("nextRound", { n: speech.number(Math.ceil(seconds)) })}` : "";
      return speech.say("firstRelease") + next;
    }
  });
}
