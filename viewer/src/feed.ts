// What happens on the server: releases as they come, and whether the server is there at all.
//
// Every release comes over /v1/feed. Between them the status is asked for, which notices a server
// that has gone; after silence whatever was missed is fetched, so nothing depends on the feed alone.

import { api, type Release, type Status } from "./api.ts";
import type { Store } from "./store.ts";

const MAX_RELEASES = 1000; // that are remembered
const LOOK_MS = 2500; // between looks at the status
const HIDDEN_LOOK_MS = 15000; // while nobody looks at the page
const PATIENCE_MS = 2000; // for an answer
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 5000;

// In order, each once, the latest ones.
export function mergeReleases(some: readonly Release[], more: readonly Release[]): Release[] {
  const byTime = new Map([...some, ...more].map((release) => [release.t, release]));
  return [...byTime.values()].sort((a, b) => a.t - b.t).slice(-MAX_RELEASES);
}

interface Heard {
  release(t: number): void;
  back(): void; // the server is there again; anything may have been missed
}

export class Feed {
  private source: EventSource | null = null;
  private heardAt = 0;
  private complete = -1; // all releases up to here are known
  private looking = false;
  private retry = FIRST_RETRY_MS;

  constructor(
    private readonly store: Store,
    private readonly heard: Heard,
  ) {}

  start(): void {
    this.listen();
    this.schedule(LOOK_MS);
    void this.look();
    document.addEventListener("visibilitychange", () => document.hidden || void this.look());
  }

  private listen(): void {
    this.source?.close();
    this.source = new EventSource("v1/feed");
    this.source.addEventListener("release", (event) => this.take(JSON.parse((event as MessageEvent<string>).data) as Release));
    this.source.onerror = () => void this.look();
  }

  private take(release: Release): void {
    this.heardAt = performance.now();
    const { status } = this.store.now;
    const before = status.newest_release ?? -1;
    if (release.t <= before) return;
    this.store.set({
      releases: mergeReleases(this.store.now.releases, [release]),
      status: {
        ...status,
        newest_release: release.t,
        oldest_release: status.oldest_release ?? release.t,
        n_releases: status.n_releases + 1,
      },
    });
    this.heard.release(release.t);
    if (release.t === this.complete + 1) this.complete = release.t;
    else void this.look();
  }

  // Timestamps that were not heard of may be holes, or releases from before the feed was open.
  private async fill(last: number): Promise<void> {
    const first = Math.max(this.complete + 1, last - MAX_RELEASES + 1);
    const releases = await api.releases(first, last);
    this.complete = Math.max(this.complete, last);
    this.store.set({ releases: mergeReleases(this.store.now.releases, releases) });
  }

  private schedule(delay: number): void {
    setTimeout(async () => {
      const silence = performance.now() - this.heardAt;
      const lively = silence < LOOK_MS && this.store.now.connection === "live";
      if (!lively) await this.look();
      const stale = this.store.now.connection !== "live";
      this.schedule(stale ? this.retry : document.hidden ? HIDDEN_LOOK_MS : LOOK_MS);
    }, delay);
  }

  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      await this.catchUp(await api.status(AbortSignal.timeout(PATIENCE_MS)));
      this.retry = FIRST_RETRY_MS;
    } catch {
      this.retry = this.store.now.connection === "stale" ? Math.min(2 * this.retry, LONGEST_RETRY_MS) : FIRST_RETRY_MS;
      this.store.set({ connection: "stale" });
    } finally {
      this.looking = false;
    }
  }

  private async catchUp(status: Status): Promise<void> {
    const { connection, status: old } = this.store.now;
    if (status.manifest !== old.manifest) return location.reload(); // another campaign: nothing here is true any more
    const known = old.newest_release ?? -1;
    const newest = status.newest_release ?? -1;
    // The feed may have told of a release that is later than this status.
    this.store.set(known > newest ? { connection: "live" } : { connection: "live", status });
    if (newest > this.complete) await this.fill(newest);
    const back = connection === "stale";
    if (back || this.source?.readyState === EventSource.CLOSED) this.listen();
    if (back) this.heard.back();
    if (newest > known) this.heard.release(newest);
  }
}
