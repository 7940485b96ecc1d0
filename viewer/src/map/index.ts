// The map, and in a simulation the real one beside it: one camera, one scale, one moment.

import { api } from "../api.ts";
import type { Legend } from "../controls.ts";
import type { Frame } from "../frame.ts";
import type { Moment, Stage } from "../playback.ts";
import { Projection } from "../projection.ts";
import { StableMaximum } from "../scale.ts";
import type { Store } from "../store.ts";
import { largestMove } from "./arrows.ts";
import { CityMap } from "./city.ts";
import { followKeys } from "./keyboard.ts";
import { namesOf, placesOn } from "./places.ts";
import { DARK, LIGHT } from "./palette.ts";
import { followPointer } from "./pointer.ts";
import { piecesOf, Streets } from "./streets.ts";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

export class Maps implements Stage {
  readonly main: CityMap;
  private real: CityMap | null = null;
  private readonly projection: Projection;
  private readonly counts = new StableMaximum();
  private readonly flows = new StableMaximum();
  private readonly zoneCounts = new StableMaximum();
  private readonly legendListeners: ((legend: Legend) => void)[] = [];
  private streets: Streets | null = null;
  private moments: [Moment, Moment] | null = null;

  constructor(
    private readonly store: Store,
    container: HTMLElement,
    private readonly realContainer: HTMLElement,
  ) {
    this.projection = new Projection(store.now.status.box, store.now.info.coordinates);
    this.main = this.create(container);
    store.watch(["layers"], () => this.layers());
    store.watch(["opacity"], ({ opacity }) => this.all.forEach((city) => city.change({ opacity })));
    store.watch(["theme"], () => this.theme());
    store.watch(["zones", "zone", "trips", "layers", "opacity", "theme"], () => this.showZones());
    prefersDark.addEventListener("change", () => this.theme());
    if (store.now.info.roads) void this.loadRoads();
    if (store.now.info.style) this.main.map.on("idle", () => this.name());
  }

  show(from: Moment, to: Moment): void {
    this.moments = [from, to];
    this.scale(to);
    this.main.show(from.frame, to.frame);
    if (to.real) this.real?.show(from.real ?? to.real, to.real);
  }

  progress(share: number): void {
    for (const city of this.all) city.change({ progress: share });
  }

  zoom(by: 1 | -1): void {
    this.main.zoom(by);
  }

  fit(): void {
    this.main.fit();
  }

  resize(): void {
    for (const city of this.all) city.map.resize();
  }

  legend(): Legend {
    const { layers, zones } = this.store.now;
    return { max: layers.zones && zones.length ? this.zoneCounts.value : this.counts.value, stops: this.palette.ramp, scale: "sqrt" };
  }

  watchLegend(call: (legend: Legend) => void): void {
    this.legendListeners.push(call);
    call(this.legend());
  }

  private get all(): CityMap[] {
    return this.real ? [this.main, this.real] : [this.main];
  }

  private get dark(): boolean {
    const { theme } = this.store.now;
    return theme === "auto" ? prefersDark.matches : theme === "dark";
  }

  private get palette() {
    return this.dark ? DARK : LIGHT;
  }

  private create(container: HTMLElement): CityMap {
    const { info, status } = this.store.now;
    const city = new CityMap(container, this.projection, status.grid, info, this.dark, container === this.realContainer);
    followPointer(city, this.store);
    followKeys(city, this.store);
    city.change({ opacity: this.store.now.opacity, streets: this.streets, maxCount: this.counts.value, maxFlow: this.flows.value });
    return city;
  }

  private scale({ frame, real }: Moment): void {
    const largest = ({ cells }: Frame) => cells.n.reduce((most, n) => Math.max(most, n), 0);
    const counts = this.counts.see(Math.max(largest(frame), real ? largest(real) : 0));
    const flows = this.flows.see(Math.max(largestMove(frame), largestMove(real)));
    if (counts || flows) for (const city of this.all) city.change({ maxCount: this.counts.value, maxFlow: this.flows.value });
    if (counts) this.tellLegend();
  }

  private showZones(): void {
    const { zones, zone, trips, layers, opacity } = this.store.now;
    const shown = layers.zones && layers.density;
    if (zones.length) this.zoneCounts.see(Math.max(...zones.map(({ n }) => n)));
    this.main.zones.show({ shown, zones, chosen: zone, trips, most: this.zoneCounts.value, opacity, palette: this.palette });
    this.tellLegend();
  }

  private tellLegend(): void {
    for (const call of this.legendListeners) call(this.legend());
  }

  private layers(): void {
    const { layers, info } = this.store.now;
    const real = layers.real && info.mode === "simulation";
    this.realContainer.hidden = !real;
    if (real && !this.real) this.openReal();
    for (const city of this.all) city.change({ show: layers });
    this.resize();
  }

  private openReal(): void {
    this.real = this.create(this.realContainer);
    const [main, real] = [this.main.map, this.real.map];
    let following = false; // a camera that follows must not lead
    const follow = (leader: typeof main, follower: typeof main) => {
      if (following || this.realContainer.hidden) return;
      following = true;
      follower.jumpTo({ center: leader.getCenter(), zoom: leader.getZoom() });
      following = false;
    };
    main.on("move", () => follow(main, real));
    real.on("move", () => follow(real, main));
    const to = this.moments?.[1];
    if (to?.real) this.real.show(to.real, to.real);
  }

  private theme(): void {
    for (const city of this.all) city.paint(this.palette);
    this.tellLegend();
  }

  // The more of the base map was seen, the more cells have a name.
  private name(): void {
    const { language, names, status } = this.store.now;
    const found = namesOf(placesOn(this.main.map, language), this.projection, status.grid);
    if ([...found].some(([cell, name]) => names.get(cell) !== name)) this.store.set({ names: new Map([...names, ...found]) });
  }

  private async loadRoads(): Promise<void> {
    const { projection } = this;
    this.streets = new Streets(piecesOf(await api.roads(), projection), [1, projection.height / projection.width]);
    for (const city of this.all) city.change({ streets: this.streets });
  }
}
