// The view "Error", in a simulation only: how far the synthetic density is from the real one.

import { api, type Errors } from "../api.ts";
import { placeOf } from "../charts/axes.ts";
import type { Controls } from "../controls.ts";
import type { Store } from "../store.ts";
import { about, POINTS } from "../frame.ts";
import { speak } from "../texts/index.ts";
import { mountChart } from "./chart.ts";
import { write, writeFigure } from "./page.ts";
import { Query, stretch, tellTrouble } from "./query.ts";
import type { Tabs } from "./tabs.ts";

const PAUSE = 1000; // milliseconds between an answer and the next question, while time goes on
const DIGITS = 4;

export function mountErrors(store: Store, controls: Controls, tabs: Tabs): void {
  const chart = mountChart({ id: "errors-chart", title: "errorOverTime", digits: DIGITS }, store, controls);
  let errors: Errors = { t: [], density_error: [] };

  const query = new Query(
    () => {
      const span = stretch(store.now.status, store.now.t)!;
      return api.errors(span.first, span.last);
    },
    (answer) => {
      errors = answer;
      chart.show({ t: errors.t, lines: [{ style: "single", values: errors.density_error }] });
      showNow();
    },
    (error) => tellTrouble("errors-trouble", error, speak(store.now)),
    PAUSE,
  );
  const refresh = () => {
    const { info, status, t } = store.now;
    const span = stretch(status, t);
    const covered = errors.t.includes(t) && errors.t.at(-1) === span?.last;
    if (info.mode === "simulation" && tabs.current === "errors" && span && !covered) query.refresh();
  };
  const showNow = () => {
    const { t, frame, realFrame } = store.now;
    const speech = speak(store.now);
    const here = placeOf(t, errors.t);
    writeFigure("error-now", errors.t[here] === t ? speech.number(errors.density_error[here]!, DIGITS) : null);
    write("n-real", realFrame ? speech.about(about(realFrame.totals, POINTS)) : "–");
    write("n-synthetic", frame ? speech.about(about(frame.totals, POINTS)) : "–");
  };
  tabs.watch(refresh);
  store.watch(["t", "status"], refresh);
  store.watch(["t", "frame", "realFrame", "language"], showNow);
}
