// The bar at the top: the campaign, the connection, language and colours.

import type { Language, State, Store, Theme } from "../store.ts";
import { speak, type Word } from "../texts/index.ts";
import { all, byId, label, press, write } from "./page.ts";

const THEMES: Theme[] = ["auto", "light", "dark"];
const THEME_NAMES: Record<Theme, Word> = { auto: "themeAuto", light: "themeLight", dark: "themeDark" };

export function mountLanguage(store: Store): void {
  const select = byId<HTMLSelectElement>("language");
  select.addEventListener("change", () => {
    store.set({ language: select.value as Language });
  });
  store.watch(["language"], (state) => {
    const { words } = speak(state);
    select.value = state.language;
    document.documentElement.lang = state.language;
    for (const place of all("[data-text]")) place.textContent = words[place.dataset.text as Word];
    for (const place of all("[data-label]")) label(place, words[place.dataset.label as Word]);
  });
}

export function mountTheme(store: Store): void {
  press("theme", () => {
    store.set({ theme: THEMES[(THEMES.indexOf(store.now.theme) + 1) % THEMES.length]! });
  });
  store.watch(["theme", "language"], (state) => {
    const speech = speak(state);
    document.documentElement.dataset.theme = state.theme;
    label(byId("theme"), speech.say("theme", { name: speech.say(THEME_NAMES[state.theme]) }));
  });
}

export function mountConnection(store: Store): void {
  let since = new Date();
  let before = store.now.connection;
  store.watch(["status"], ({ status }) => {
    write("campaign", status.campaign);
    document.title = `${status.campaign} · RetraSyn`;
  });
  store.watch(["connection", "status", "language"], (state) => {
    if (state.connection !== before) since = new Date();
    before = state.connection;
    byId("connection").dataset.state = isWaiting(state) ? "waiting" : state.connection;
    write("connection-text", describe(state, since));
  });
}

const isWaiting = ({ connection, status }: State) => connection === "live" && status.newest_release === null;

function describe(state: State, since: Date): string {
  const speech = speak(state);
  if (isWaiting(state)) return speech.say("waiting");
  if (state.connection === "stale") return speech.say("stale", { time: speech.hour(since, true) });
  return speech.say(state.connection === "live" ? "connected" : "connecting");
}
