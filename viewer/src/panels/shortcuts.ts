// Keys that work anywhere on the page, unless the focused element has its own use for them.

import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { openHelp } from "./dialogs.ts";
import { togglePlay } from "./timeline.ts";

const WRITES = "input:not([type=range]):not([type=checkbox]), select, textarea";
const OWN_USE: Record<string, string> = {
  " ": "button, a, input, summary, canvas, [role=tab]",
  ArrowLeft: "input, canvas, [role=tab]",
  ArrowRight: "input, canvas, [role=tab]",
};

export function mountShortcuts(store: Store, controls: Controls): void {
  const actions: Record<string, () => void> = {
    " ": () => togglePlay(store, controls),
    ArrowLeft: () => controls.step(-1),
    ArrowRight: () => controls.step(1),
    l: () => controls.goLive(),
    b: () => controls.startBox(),
    "?": openHelp,
  };
  addEventListener("keydown", (event) => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = actions[key];
    const target = event.target as Element;
    if (!action || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches(WRITES) || (OWN_USE[key] && target.matches(OWN_USE[key])) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    action();
  });
}
