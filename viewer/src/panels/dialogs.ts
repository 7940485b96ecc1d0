// What opens above the page: the help, and an invitation to take part.

import { MAP_KEYS } from "../controls.ts";
import type { Store } from "../store.ts";
import { speak, type Speech, type Word } from "../texts/index.ts";
import { all, byId, make, press, write } from "./page.ts";

const KEYS: [word: Word, keys: string[]][] = [
  ["keyPlay", ["Space"]],
  ["keyStep", ["←", "→"]],
  ["keyLive", ["L"]],
  ["keyBox", ["B"]],
  ["keyHelp", ["?"]],
];
const MAP_WORDS: Record<keyof typeof MAP_KEYS, Word> = {
  select: "mapSelect",
  move: "mapMove",
  pan: "mapPan",
  zoom: "mapZoom",
  fit: "mapFit",
  leave: "mapLeave",
};

export const openHelp = () => byId<HTMLDialogElement>("help").showModal();

export function mountDialogs(store: Store): void {
  press("help-open", openHelp);
  for (const dialog of all<HTMLDialogElement>("dialog")) {
    // A click beside the dialog is a click on the dialog itself.
    dialog.addEventListener("click", (event) => {
      const target = event.target as Element;
      if (target === dialog || target.closest("[data-close]")) dialog.close();
    });
  }
  store.watch(["language"], (state) => {
    const speech = speak(state);
    byId("keys").replaceChildren(...KEYS.map(([word, keys]) => row(speech, word, keys)));
    const onMap = Object.entries(MAP_KEYS) as [keyof typeof MAP_KEYS, readonly string[]][];
    byId("map-keys").replaceChildren(...onMap.map(([name, keys]) => row(speech, MAP_WORDS[name], keys)));
  });
  invite();
  addEventListener("hashchange", invite);
}

function row(speech: Speech, word: Word, keys: readonly string[]): HTMLElement {
  const caps = keys.map((key) => make("kbd", "", key === "Space" ? speech.say("keySpace") : key));
  return make("div", "", make("dt", "", ...caps), make("dd", "", speech.say(word)));
}

// What stands behind # never leaves the browser.
function invite(): void {
  if (!location.hash.startsWith("#enrol=")) return;
  write("link", location.href);
  byId<HTMLDialogElement>("invitation").showModal();
}
