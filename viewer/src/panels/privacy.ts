// The view "Privacy": what is promised, what was spent of it, and what is not protected.

import { api, type Receipt, type Status, type UsualPlace } from "../api.ts";
import type { State, Store } from "../store.ts";
import { fill, speak, type Speech, type Word } from "../texts/index.ts";
import { byId, make, show, write } from "./page.ts";
import { Query, tellTrouble } from "./query.ts";
import type { Tabs } from "./tabs.ts";

// More of a receipt than other parts of the page need; null: not private at all.
export interface Account extends Receipt {
  private: boolean;
  within_guarantee: boolean;
  seed: number | null; // null: drawn, and known to nobody
  worst_window: { declared: { epsilon: number; timestamps: number } };
  lifetime: { timestamps: number; epsilon: number | null };
}

const PAUSE = 10_000;

export function mountPrivacy(store: Store, tabs: Tabs): void {
  let account: Account | null = null;
  let newest: number | null = null;

  const query = new Query(
    () => {
      newest = store.now.status.newest_release;
      return api.receipt() as Promise<Account>;
    },
    (answer) => {
      account = answer;
      showAccount(store.now, account);
    },
    (error) => {
      tellTrouble("privacy-trouble", error, speak(store.now));
      if (error?.status !== 404) return;
      newest = null;
      write("privacy-trouble", speak(store.now).say("noReceipt"));
    },
    PAUSE,
  );
  const refresh = () => {
    const { status } = store.now;
    if (!hasReceipt(status) || status.newest_release === null) return;
    if (tabs.current === "privacy" && (!account || status.newest_release !== newest)) query.refresh();
  };
  tabs.watch(refresh);
  store.watch(["status"], refresh);
  store.watch(["status", "frame", "language"], (state) => showAccount(state, account));
}

// A recorded file may have none; its status then states no epsilon.
export const hasReceipt = (status: Status) => status.epsilon > 0;

function showAccount(state: State, account: Account | null): void {
  const { status, frame } = state;
  const speech = speak(state);
  const values = {
    epsilon: speech.number(status.epsilon, 3),
    window: speech.number(status.window),
    unit: unitOf(status, speech),
    whose: protectedOne(status, speech),
  };
  const [head, broken] = judge(status, account);
  byId("promise").classList.toggle("broken", broken);
  write("promise-head", speech.say(head, values));
  const [sentence, language] = stateGuarantee(status, speech);
  write("promise-text", sentence);
  byId("promise-text").lang = language;
  write("meaning", speech.say("meaningText", { ...values, factor: speech.number(Math.exp(status.epsilon), 1) }));
  // What is not promised has no meaning; what nobody states, 0 in the status, is not shown as a figure.
  for (const part of ["meaning-head", "meaning"]) show(part, !broken);
  show("promise-facts", hasReceipt(status));
  write("epsilon", values.epsilon);
  write("window", values.window);
  write("window-name", speech.say("window", values));
  write("privacy-reports", frame ? speech.number(frame.nReports) : "–");
  show("receipt-body", account !== null);
  if (account) showSpent(account, status, speech);
}

// What is said first, and whether that is bad news.
export function judge(status: Status, account: Account | null): [Word, boolean] {
  const guessable = account ? account.seed !== null : status.guarantee.startsWith("NOT PRIVATE AGAINST");
  if (account ? !account.private : status.guarantee.startsWith("NOT") && !guessable) return ["promiseBroken", true];
  if (account && !account.within_guarantee) return ["promiseExceeded", true];
  return guessable ? ["promiseGuessable", true] : ["promiseKept", false];
}

function showSpent(account: Account, status: Status, speech: Speech): void {
  const { epsilon } = status;
  const whose = protectedOne(status, speech);
  const { epsilon: spent, timestamps } = account.worst_window.declared;
  const bounded = (value: number | null) => (value === null ? speech.say("unbounded") : speech.number(value, 3));
  const text = speech.say("worst", { spent: bounded(spent), epsilon: speech.number(epsilon, 3) });
  const meter = byId("worst-meter");
  write("worst", text);
  meter.setAttribute("aria-valuemax", String(epsilon));
  meter.setAttribute("aria-valuenow", String(Math.min(spent ?? epsilon, epsilon)));
  meter.setAttribute("aria-valuetext", text);
  (meter.firstElementChild as HTMLElement).style.width = `${Math.min((spent ?? epsilon) / epsilon, 1) * 100}%`;
  write("worst-note", speech.say("worstNote", { whose, n: speech.number(timestamps) }));
  const { lifetime } = account;
  write("lifetime", speech.say("lifetime", { whose, n: speech.number(lifetime.timestamps), epsilon: bounded(lifetime.epsilon) }));
  byId("not-protected").replaceChildren(
    ...account.not_protected.map((line) => {
      const translated = translateOpen(line, account.usual_place, speech);
      const item = make("li", "", translated ?? line);
      if (!translated) item.lang = "en";
      return item;
    }),
  );
}

// What is not protected, in the reader's language; undefined where that is English, or we do not know the line.
export function translateOpen(line: string, place: UsualPlace | null, speech: Speech): string | undefined {
  const { statements } = speech;
  if (!statements || !place || !line.startsWith("long-run repetition:")) return statements?.notProtected[line];
  return fill(place.nights === null ? statements.usualPlace : statements.usualPlaceNights, {
    reports: speech.number(place.reports),
    timestamps: speech.number(place.timestamps),
    nights: speech.number(place.nights ?? 0),
    cap: speech.number(place.lifetime_cap ?? 0, 3),
  });
}

const unitOf = (status: Status, speech: Speech) => speech.say(status.unit === "transition" ? "transitions" : "positions");

// Who is promised something; where the data names no users, it is a stream.
const whoIs = (status: Status) => /\bFor one (person|stream) /.exec(status.guarantee)?.[1] as "person" | "stream" | undefined;

const protectedOne = (status: Status, speech: Speech) =>
  speech.say(whoIs(status) === "stream" ? "oneStream" : "onePerson");

// The guarantee and the language it is in: the server's own words, or ours if we know what it says.
export function stateGuarantee(status: Status, speech: Speech): [string, string] {
  const whose = whoIs(status);
  const { statements } = speech;
  if (!statements || !whose) return [status.guarantee, "en"];
  const sentence = fill(statements.guarantee, {
    whose: statements[whose],
    window: speech.number(status.window),
    unit: unitOf(status, speech),
    epsilon: speech.number(status.epsilon, 3),
    presence: status.presence.startsWith("hidden") ? statements.presenceHidden : statements.presenceSame,
  });
  return [sentence, speech.language];
}
