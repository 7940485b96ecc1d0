// The view "Area": a box drawn or typed, and how many travellers were in it over time.

import { api, areaPath, type AreaCount, type Box } from "../api.ts";
import { placeOf } from "../charts/axes.ts";
import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { mountChart } from "./chart.ts";
import { byId, press, show, write, writeFigure } from "./page.ts";
import { Query, stretch, tellTrouble } from "./query.ts";
import type { Tabs } from "./tabs.ts";

const FIELDS = ["x0", "y0", "x1", "y1"] as const; // in the order of a box
const PAUSE = 1000; // milliseconds between an answer and the next question, while time goes on

// A comma is a decimal point to many.
export function readBox(texts: readonly string[]): Box | null {
  const numbers = texts.map((text) => (text.trim() ? Number(text.trim().replace(",", ".")) : NaN));
  const [x0, y0, x1, y1] = numbers as [number, number, number, number];
  return numbers.every(Number.isFinite) && x0 < x1 && y0 < y1 ? [x0, y0, x1, y1] : null;
}

export function mountArea(store: Store, controls: Controls, tabs: Tabs): void {
  const chart = mountChart({ id: "area-chart", title: "overTime", digits: 0 }, store, controls);
  const fields = FIELDS.map((id) => byId<HTMLInputElement>(id));
  let count: AreaCount | null = null;
  let opened: Box | null = null; // the box that was last gone to

  const query = new Query(
    (signal) => {
      const { box, status, t, over } = store.now;
      const span = stretch(status, t)!;
      return api.area(box!, span.first, span.last, over, signal);
    },
    (answer) => {
      count = answer;
      draw();
    },
    (error) => tellTrouble("area-trouble", error, speak(store.now)),
    PAUSE,
  );

  const draw = () => {
    const { t, n, band } = count ?? { t: [], n: [], band: null };
    chart.show({ t, lines: [{ style: "single", values: n, band }] });
    const link = byId<HTMLAnchorElement>("area-csv");
    const { box, over } = store.now;
    if (box && t.length) link.href = areaPath(box, t[0]!, t.at(-1)!, over, "csv");
    else link.removeAttribute("href");
    showNow();
  };
  const showNow = () => {
    const here = count ? placeOf(store.now.t, count.t) : -1;
    const known = count?.t[here] === store.now.t;
    const n = known ? count!.n[here]! : 0;
    const found = { n, low: count?.band?.low[here] ?? n, high: count?.band?.high[here] ?? n };
    writeFigure("area-now", known ? speak(store.now).about(found) : null);
    write("area-range", known ? speak(store.now).range(found) : "");
  };

  const isWanted = () => store.now.box !== null && tabs.current === "area" && stretch(store.now.status, 0) !== null;
  const isCovered = () => {
    const { t, status } = store.now;
    return count !== null && count.t.includes(t) && count.t.at(-1) === stretch(status, t)?.last;
  };
  const refresh = () => void (isWanted() && !isCovered() && query.refresh());

  press("draw", () => (store.now.drawing ? controls.clearBox() : controls.startBox()));
  press("area-clear", () => controls.clearBox());
  byId("area-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const box = readBox(fields.map((field) => field.value));
    if (box) store.set({ box, drawing: false });
    show("area-trouble", !box);
    if (!box) write("area-trouble", speak(store.now).say("badBox"));
  });
  store.watch(["box", "over"], ({ box, status }) => {
    query.stop();
    count = null;
    write("area-now", "–");
    show("area-trouble", false);
    show("area-body", box !== null);
    show("area-hint", box === null);
    draw();
    fields.forEach((field, i) => (field.value = box ? String(rounded(box[i]!, status.box)) : ""));
    if (!box) return void (opened = null);
    if (box !== opened) tabs.open("area");
    opened = box;
    if (isWanted()) query.start();
  });
  store.watch(["status"], ({ status }) => fields.forEach((field, i) => (field.placeholder = String(rounded(status.box[i]!, status.box)))));
  store.watch(["drawing", "language"], (state) => {
    if (state.drawing) tabs.open("area", false);
    byId("draw").setAttribute("aria-pressed", String(state.drawing));
    write("draw", speak(state).say(state.drawing ? "drawing" : "draw"));
  });
  store.watch(["box"], ({ box }) => void (byId<HTMLButtonElement>("area-clear").disabled = !box));
  tabs.watch(refresh);
  store.watch(["t", "status"], refresh);
  store.watch(["t", "language"], showNow);
}

// No more digits than tell a hundred-thousandth of the whole apart.
export function rounded(value: number, [x0, y0, x1, y1]: Box): number {
  const digits = Math.max(0, Math.ceil(5 - Math.log10(Math.min(x1 - x0, y1 - y0))));
  return Number(value.toFixed(Math.min(digits, 12)));
}
