// Starts the page: what the server says first, then the map, the clock, the feed and the panels.

import { api, type MapInfo, type Status } from "./api.ts";
import type { Controls } from "./controls.ts";
import { Feed } from "./feed.ts";
import { FrameCache } from "./frames.ts";
import { Maps } from "./map/index.ts";
import { mountPanels } from "./panels/index.ts";
import { type Moment, Playback } from "./playback.ts";
import { keepPreferences, preferences } from "./preferences.ts";
import { Store } from "./store.ts";
import { speak } from "./texts/index.ts";
import { Timeline } from "./timeline.ts";

const RETRY_MS = 1000;
const OVER_BASE = 0.72; // how opaque cells are on a base map, which has to show through

// The server may still be starting.
async function firstAnswer(): Promise<[Status, MapInfo]> {
  for (;;) {
    try {
      return await Promise.all([api.status(), api.map()]);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

// Without WebGL 2 there is no map; the figures are still to be had.
function openMaps(): Maps {
  try {
    return new Maps(store, element("map"), element("real-map"));
  } catch (error) {
    element("map-note").hidden = false;
    element("map-note").textContent = speak(store.now).say("noGraphics");
    throw error;
  }
}

const [status, info] = await firstAnswer();

const store = new Store({
  info,
  status,
  connection: "live",
  releases: [],
  t: (info.unfolds ? status.newest_release : status.oldest_release) ?? 0,
  frame: null,
  realFrame: null,
  live: info.unfolds,
  playing: info.unfolds,
  speed: 2,
  hover: null,
  zones: [],
  zone: null,
  trips: [],
  names: new Map(),
  cell: null,
  box: null,
  drawing: false,
  layers: { density: true, flows: false, travellers: true, roads: info.roads, real: false, zones: false },
  over: 1,
  opacity: info.style ? OVER_BASE : 1,
  ...preferences(),
});
keepPreferences(store);

const frames = new FrameCache((t, signal) => api.frame(t, info.travellers, store.now.over, signal));
const realFrames = new FrameCache((t, signal) => api.realFrame(t, info.travellers, store.now.over, signal));
const showsReal = () => info.mode === "simulation" && store.now.layers.real;

const moments = {
  async get(t: number): Promise<Moment> {
    const [frame, real] = await Promise.all([frames.get(t), showsReal() ? realFrames.get(t) : null]);
    return { frame, real };
  },
  want(times: readonly number[]): void {
    frames.want(times);
    if (showsReal()) realFrames.want(times);
  },
};

const timeline = new Timeline(
  async (first, last) => (await api.releases(first, last)).map(({ t }) => t),
  () => {
    const { oldest_release: oldest, newest_release: newest } = store.now.status;
    return newest === null ? null : [oldest ?? 0, newest];
  },
);

// The first frame travels while the map starts.
if (status.newest_release !== null) frames.want([store.now.t]);

const element = (id: string) => document.getElementById(id)!;
const maps = openMaps();
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const playback = new Playback(
  store,
  timeline,
  moments,
  maps,
  {
    now: () => performance.now(),
    frame: (call) => requestAnimationFrame(call),
    wait: (milliseconds, call) => setTimeout(call, milliseconds),
  },
  () => reducedMotion.matches,
);

const controls: Controls = {
  seek: (t) => void playback.seek(t),
  step: (by) => void playback.step(by),
  play: () => void playback.play(),
  pause: () => playback.pause(),
  goLive: () => void playback.goLive(),
  setSpeed: (speed) => playback.setSpeed(speed),
  zoomIn: () => maps.zoom(1),
  zoomOut: () => maps.zoom(-1),
  fit: () => maps.fit(),
  selectCell: (cell) => store.set({ cell }),
  startBox: () => {
    store.set({ drawing: true });
    maps.main.map.getCanvas().focus();
  },
  clearBox: () => store.set({ box: null, drawing: false }),
  legend: () => maps.legend(),
  watchLegend: (call) => maps.watchLegend(call),
};

// For tests in a browser, and for the curious; nothing on the page reads it.
Object.defineProperty(window, "retrasyn", {
  value: Object.freeze({
    store,
    map: maps.main.map,
    fps: () => maps.main.overlay.fps,
    travellers: () => maps.main.overlay.travellersDrawn,
    t: () => maps.main.scene.to?.t ?? null,
    progress: () => maps.main.scene.progress,
  }),
});

const feed = new Feed(store, {
  release: (t) => {
    timeline.add(t);
    void playback.arrived(t);
  },
  back: () => {
    timeline.forget();
    if (store.now.frame === null) void playback.refresh();
  },
});

// What still unfolds is followed; what is all there is played from its beginning.
async function begin(): Promise<void> {
  if (info.unfolds) return playback.goLive();
  await playback.seek(store.now.t);
  if (!reducedMotion.matches) await playback.play();
}

// Told when it can be seen: after the picture that was asked for last.
const tell = (word: string) => requestAnimationFrame(() => requestAnimationFrame(() => (document.documentElement.dataset.map = word)));
store.watch(["frame"], ({ frame }) => tell(frame ? "drawn" : "empty"));
void begin();
mountPanels(store, controls);
maps.resize(); // panels have taken their place
feed.start();

let { over } = store.now;
store.watch(["over"], (state) => {
  if (over === state.over) return;
  over = state.over;
  for (const cache of [frames, realFrames]) cache.clear();
  void playback.refresh();
});

let real = showsReal();
store.watch(["layers"], () => {
  if (real === showsReal()) return;
  real = showsReal();
  void playback.refresh();
});
