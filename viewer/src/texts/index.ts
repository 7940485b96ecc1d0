// Speaks one language: texts, numbers and times.

import type { Status } from "../api.ts";
import type { Span } from "../charts/span.ts";
import type { About } from "../frame.ts";
import type { Language, State } from "../store.ts";
import { de, german } from "./de.ts";
import { en, type Statements, type Words } from "./en.ts";
import { chinese, zh } from "./zh.ts";

export type Word = keyof Words;

const DAY = 86_400; // seconds
const FEW = 100; // a larger average needs no digits after the point

const WORDS: Record<Language, Words> = { en, de, zh };
const STATEMENTS: Record<Language, Statements | null> = { en: null, de: german, zh: chinese };

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

// A campaign has a clock; recorded data often has nothing but numbered timestamps.
export const hasClock = (status: Status) => status.epoch > 0;

const timeOf = (status: Status, t: number) => new Date((status.epoch + t * status.period) * 1000);

export class Speech {
  readonly words: Words;
  readonly statements: Statements | null;
  private readonly formats = new Map<string, Intl.DateTimeFormat | Intl.NumberFormat>();

  constructor(
    readonly language: Language,
    private readonly locale: string = language,
  ) {
    this.words = WORDS[language];
    this.statements = STATEMENTS[language];
  }

  say(word: Word, values: Record<string, string | number> = {}): string {
    return fill(this.words[word], values);
  }

  number(value: number, digits = 0): string {
    const make = () => new Intl.NumberFormat(this.locale, { maximumFractionDigits: digits });
    return (this.format(`n${digits}`, make) as Intl.NumberFormat).format(value);
  }

  // 30 ± 12, half of the interval, where it is known how far the number may be off.
  about({ n, low = n, high = n }: About, digits = 1): string {
    const half = (high - low) / 2;
    const places = Number.isInteger(n) || Math.max(n, half) >= FEW ? 0 : digits;
    if (!(half > 0)) return this.number(n, places);
    return `${this.number(n, places)} ± ${this.number(half, half < 1 ? 1 : places)}`;
  }

  // 18 to 45, between which it lies nine times of ten.
  range({ n, low, high }: About): string {
    if (low === undefined || high === undefined || low === high) return "";
    const places = Math.max(n, high) < FEW ? 1 : 0;
    return this.say("between", { low: this.number(low, places), high: this.number(high, places) });
  }

  // 12.3K, for the edge of a chart.
  short(value: number): string {
    const make = () => new Intl.NumberFormat(this.locale, { notation: "compact", maximumSignificantDigits: 3 });
    return (this.format("short", make) as Intl.NumberFormat).format(value);
  }

  hour(date: Date, seconds = false): string {
    const make = () =>
      new Intl.DateTimeFormat(this.locale, {
        hour: "2-digit",
        minute: "2-digit",
        ...(seconds && { second: "2-digit" }),
      });
    return (this.format(`h${seconds}`, make) as Intl.DateTimeFormat).format(date);
  }

  day(date: Date): string {
    const old = date.getFullYear() !== new Date().getFullYear();
    const make = () =>
      new Intl.DateTimeFormat(this.locale, {
        weekday: "short",
        day: "numeric",
        month: "short",
        ...(old && { year: "numeric" }),
      });
    return (this.format(`day${old}`, make) as Intl.DateTimeFormat).format(date);
  }

  // The time of a timestamp, as short as it can be told from its neighbours on the same day.
  time(status: Status, t: number): string {
    if (!hasClock(status)) return this.say("timestamp", { t: this.number(t) });
    return this.hour(timeOf(status, t), status.period % 60 !== 0);
  }

  // At the ends of a stretch of time: with the day, if there is more than one.
  end(status: Status, t: number, { first, last }: Span): string {
    if (!hasClock(status)) return this.number(t);
    if ((last - first) * status.period <= DAY) return this.time(status, t);
    const make = () =>
      new Intl.DateTimeFormat(this.locale, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
    return (this.format("end", make) as Intl.DateTimeFormat).format(timeOf(status, t));
  }

  date(status: Status, t: number): string {
    return hasClock(status) ? this.day(timeOf(status, t)) : "";
  }

  // With its day, for where no day stands beside.
  moment(status: Status, t: number): string {
    return hasClock(status) ? `${this.date(status, t)}, ${this.time(status, t)}` : this.time(status, t);
  }

  private format<T extends Intl.DateTimeFormat | Intl.NumberFormat>(key: string, make: () => T): T {
    const known = this.formats.get(key) as T | undefined;
    if (known) return known;
    const made = make();
    this.formats.set(key, made);
    return made;
  }
}

const speeches = new Map<Language, Speech>();

// The reader's own variety of a language, say en-GB, decides how numbers and times look.
export function speak({ language }: Pick<State, "language">): Speech {
  let speech = speeches.get(language);
  if (!speech) {
    const variety = navigator.languages.find((tag) => tag.toLowerCase().startsWith(language));
    speeches.set(language, (speech = new Speech(language, variety)));
  }
  return speech;
}
