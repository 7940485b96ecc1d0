// MapLibre comes as scripts of its own, before this one (see build.mjs).

import type * as MapLibre from "maplibre-gl";

export const { Map, setWorkerCount, setWorkerUrl } = (globalThis as unknown as { maplibregl: typeof MapLibre }).maplibregl;
