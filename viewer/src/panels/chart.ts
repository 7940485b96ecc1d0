// A line chart that speaks the reader's language and follows the time shown.

import { LineChart, type Extent } from "../charts/line.ts";
import type { Span } from "../charts/span.ts";
import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { speak, type Word } from "../texts/index.ts";
import { byId } from "./page.ts";

export interface Labelled {
  id: string;
  title: Word;
  digits: number; // after the point
}

export function mountChart({ id, title, digits }: Labelled, store: Store, controls: Controls): LineChart {
  const speech = () => speak(store.now);
  const value = (n: number, low = n, high = n) => speech().about({ n, low, high }, digits || 1);
  const moment = (t: number) => speech().moment(store.now.status, t);
  const words = {
    value,
    least: digits ? 0 : 1,
    time: (t: number, span: Span) => speech().end(store.now.status, t, span),
    mark: (n: number) => (digits ? value(n) : speech().short(n)),
    label: ({ first, last, low, high, now }: Extent) => {
      const known = { first: moment(first), last: moment(last), low: value(low), high: value(high) };
      const told = speech().say("chartSummary", { ...known, now: now === null ? speech().say("none") : value(now) });
      return `${speech().say(title)}. ${told}`;
    },
  };
  const chart = new LineChart(byId(id), words, (t) => controls.seek(t));
  store.watch(["t"], ({ t }) => chart.mark(t));
  store.watch(["language"], () => chart.draw());
  return chart;
}
