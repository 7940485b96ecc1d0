// What lies on the map: layers, zoom, the legend, and words for those who do not see it.

import type { Controls, Legend } from "../controls.ts";
import type { Layers, Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { busiest, cellName } from "./cells.ts";
import { hasReceipt } from "./privacy.ts";
import { all, byId, make, press, show, write } from "./page.ts";

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

export function mountZoom(controls: Controls): void {
  press("zoom-in", () => controls.zoomIn());
  press("zoom-out", () => controls.zoomOut());
  press("fit", () => controls.fit());
}

export function mountLegend(store: Store, controls: Controls): void {
  const draw = ({ max, stops }: Legend) => {
    byId("ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    // On a ramp of square roots a quarter of the most stands in the middle.
    const marks = [0, ...(max < 4 ? [] : [max / 4]), max].map((n) => make("span", "", speak(store.now).number(n, 1)));
    byId("ramp-marks").replaceChildren(...marks);
  };
  controls.watchLegend(draw);
  store.watch(["language", "theme"], () => draw(controls.legend()));
  store.watch(["layers", "frame", "language"], (state) => {
    show("legend", state.layers.density && state.frame !== null);
    write("legend-name", speak(state).say(state.layers.real ? "legendBoth" : "legend"));
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
    const [most] = frame ? busiest(frame.counts, 1) : [];
    write(
      "map-summary",
      frame
        ? speech.say("mapSummary", {
            time: speech.moment(status, frame.t),
            n: speech.number(frame.nPoints),
            cell: most === undefined ? speech.say("none") : cellName(most, frame.side),
            most: speech.number(most === undefined ? 0 : frame.counts[most]!),
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
