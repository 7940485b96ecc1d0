// The bar at the bottom: the time shown, and the ways to another one.

import { sparkPath } from "../charts/spark.ts";
import type { Controls } from "../controls.ts";
import type { State, Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { all, byId, label, make, press, write } from "./page.ts";

const SPEEDS = [0.5, 1, 2, 4, 8, 16]; // timestamps a second

const isPlaying = ({ playing, live }: State) => playing || live;

export const togglePlay = (store: Store, controls: Controls) =>
  isPlaying(store.now) ? controls.pause() : controls.play();

export function mountTimeline(store: Store, controls: Controls): void {
  const scrubber = byId<HTMLInputElement>("scrubber");
  scrubber.addEventListener("input", () => controls.seek(Number(scrubber.value)));
  press("play", () => togglePlay(store, controls));
  press("live", () => controls.goLive());
  store.watch(["playing", "live", "language"], (state) => {
    byId("play").classList.toggle("playing", isPlaying(state));
    label(byId("play"), speak(state).say(isPlaying(state) ? "pause" : "play"));
    byId("live").setAttribute("aria-pressed", String(state.live));
  });
  store.watch(["t", "status", "language"], (state) => showTime(state, scrubber));
  store.watch(["releases", "status"], drawSpark);
  mountSpeed(store, controls);
}

function showTime(state: State, scrubber: HTMLInputElement): void {
  const { t, status } = state;
  const speech = speak(state);
  const empty = status.newest_release === null;
  const first = status.oldest_release ?? 0;
  const last = status.newest_release ?? 0;
  for (const id of ["scrubber", "play", "live"]) byId<HTMLButtonElement>(id).disabled = empty;
  scrubber.min = String(first);
  scrubber.max = String(last);
  scrubber.value = String(t);
  scrubber.setAttribute("aria-valuetext", empty ? speech.say("none") : speech.moment(status, t));
  write("clock-time", empty ? "–" : speech.time(status, t));
  write("clock-day", empty ? "" : speech.date(status, t));
  const ends = (at: number) => (empty ? "" : speech.end(status, at, { first, last }));
  write("first-time", ends(first));
  write("last-time", ends(last));
  const passed = last > first ? (t - first) / (last - first) : 0;
  byId<HTMLElement>("spark").querySelector<SVGPathElement>(".past")!.style.clipPath = `inset(0 ${100 - passed * 100}% 0 0) view-box`;
  scrubber.style.setProperty("--passed", `${passed * 100}%`);
}

function drawSpark({ releases, status }: State): void {
  const t = releases.map((release) => release.t);
  const n = releases.map((release) => release.n_points);
  const path = sparkPath(t, n, { first: status.oldest_release ?? 0, last: status.newest_release ?? 0 });
  for (const part of all<SVGPathElement>("#spark path")) part.setAttribute("d", path);
}

function mountSpeed(store: Store, controls: Controls): void {
  const select = byId<HTMLSelectElement>("speed");
  select.addEventListener("change", () => controls.setSpeed(Number(select.value)));
  store.watch(["speed", "language"], (state) => {
    const speech = speak(state);
    const speeds = [...new Set([...SPEEDS, state.speed])].sort((a, b) => a - b);
    select.replaceChildren(
      ...speeds.map((speed) => {
        const option = make("option", "", speech.say("speedValue", { n: speech.number(speed, 2) }));
        option.value = String(speed);
        return option;
      }),
    );
    select.value = String(state.speed);
  });
}
