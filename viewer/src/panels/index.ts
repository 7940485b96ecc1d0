// Everything around the map.

import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { mountArea } from "./area.ts";
import { mountCell } from "./cell.ts";
import { mountDialogs } from "./dialogs.ts";
import { mountErrors } from "./errors.ts";
import { mountConnection, mountLanguage, mountTheme } from "./header.ts";
import { mountNow } from "./now.ts";
import { mountLayers, mountLegend, mountNumbers, mountSummary, mountTip, mountZoom } from "./overlay.ts";
import { mountPrivacy } from "./privacy.ts";
import { mountSaid } from "./said.ts";
import { mountShortcuts } from "./shortcuts.ts";
import { Tabs } from "./tabs.ts";
import { mountZones } from "./zones.ts";
import { mountTimeline } from "./timeline.ts";

export function mountPanels(store: Store, controls: Controls): void {
  mountLanguage(store); // first: all others speak it
  mountTheme(store);
  mountConnection(store);
  mountLayers(store);
  mountNumbers(store);
  mountZoom(controls);
  mountLegend(store, controls);
  mountSummary(store);
  mountTip(store);
  mountTimeline(store, controls);
  const tabs = new Tabs(store);
  mountNow(store, controls);
  mountZones(store);
  mountCell(store, controls, tabs);
  mountArea(store, controls, tabs);
  mountPrivacy(store, tabs);
  mountErrors(store, controls, tabs);
  mountSaid(store);
  mountDialogs(store);
  mountShortcuts(store, controls);
}
