// One question to the server at a time: a newer one replaces an older one, and a failed one is asked again.

import { Refused, type Status } from "../api.ts";
import type { Span } from "../charts/span.ts";
import type { Speech } from "../texts/index.ts";
import { byId } from "./page.ts";

const AGAIN = 5000; // milliseconds until a refused question is asked again
const LONGEST = 400; // timestamps in one answer

// The stretch of history to ask about: it holds t, and reaches the newest release if it can.
export function stretch(status: Status, t: number): Span | null {
  const { oldest_release: oldest, newest_release: newest } = status;
  if (oldest === null || newest === null) return null;
  const last = newest - t < LONGEST ? newest : t + LONGEST / 2;
  return { first: Math.max(oldest, last - LONGEST + 1), last };
}

export class Query<Answer> {
  private running: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private done = 0;

  constructor(
    private readonly ask: (signal: AbortSignal) => Promise<Answer>,
    private readonly take: (answer: Answer) => void,
    private readonly fail: (error: Refused | null) => void,
    private readonly pause = 0, // milliseconds from an answer to a question that nobody waits for
  ) {}

  stop(): void {
    clearTimeout(this.timer ?? undefined);
    this.timer = null;
    this.running?.abort();
    this.running = null;
  }

  start(): void {
    this.stop();
    void this.run();
  }

  // As soon as the pause allows, unless that is already planned.
  refresh(): void {
    if (this.timer || this.running) return;
    this.later(Math.max(0, this.done + this.pause - Date.now()));
  }

  private finish(): void {
    this.running = null;
    this.done = Date.now();
  }

  private later(milliseconds: number): void {
    this.timer = setTimeout(() => {
      this.timer = null;
      void this.run();
    }, milliseconds);
  }

  private async run(): Promise<void> {
    const running = (this.running = new AbortController());
    try {
      const answer = await this.ask(running.signal);
      if (running.signal.aborted) return;
      this.finish();
      this.fail(null);
      this.take(answer);
    } catch (error) {
      if (running.signal.aborted) return;
      this.finish();
      if (!(error instanceof Refused)) throw error;
      this.fail(error);
      if (![400, 404, 422].includes(error.status)) this.later(AGAIN);
    }
  }
}

// One line in a panel that says why there is no answer.
export function tellTrouble(id: string, error: Refused | null, speech: Speech): void {
  const place = byId(id);
  place.hidden = !error;
  if (!error) return;
  const known = ({ 0: "noAnswer", 404: "notThere", 429: "tooMany", 503: "notReady" } as const)[error.status];
  place.textContent = known ? speech.say(known) : speech.say("refused", { reason: error.message });
}
