// Frames that were fetched: each once, the least recently used forgotten first, stale requests dropped.

import type { Frame } from "./frame.ts";

type Load = (t: number, signal: AbortSignal) => Promise<Frame>;

export const frameBytes = (frame: Frame): number => frame.cells.n.buffer.byteLength;

export class FrameCache {
  private readonly kept = new Map<number, Frame>(); // oldest use first
  private readonly pending = new Map<number, { frame: Promise<Frame>; abort: AbortController }>();
  bytes = 0;

  constructor(
    private readonly load: Load,
    private readonly maxBytes = 48e6,
  ) {}

  has(t: number): boolean {
    return this.kept.has(t);
  }

  async get(t: number): Promise<Frame> {
    const found = this.kept.get(t);
    if (found) {
      this.kept.delete(t);
      this.kept.set(t, found); // used last
      return found;
    }
    return (this.pending.get(t) ?? this.fetch(t)).frame;
  }

  // Everything is to be asked for anew.
  clear(): void {
    this.want([]);
    this.kept.clear();
    this.bytes = 0;
  }

  // What will be asked for soon. Whatever else is on its way is not wanted any more.
  want(times: readonly number[]): void {
    for (const [t, request] of this.pending) if (!times.includes(t)) request.abort.abort();
    for (const t of times) if (!this.kept.has(t) && !this.pending.has(t)) this.fetch(t).frame.catch(() => undefined);
  }

  private fetch(t: number) {
    const abort = new AbortController();
    const frame = this.load(t, abort.signal).then(
      (loaded) => {
        this.forget(t, abort);
        this.keep(t, loaded);
        return loaded;
      },
      (error: unknown) => {
        this.forget(t, abort);
        throw error;
      },
    );
    const request = { frame, abort };
    this.pending.set(t, request);
    abort.signal.addEventListener("abort", () => this.forget(t, abort));
    return request;
  }

  private forget(t: number, abort: AbortController): void {
    if (this.pending.get(t)?.abort === abort) this.pending.delete(t);
  }

  private keep(t: number, frame: Frame): void {
    if (this.kept.has(t)) return;
    this.kept.set(t, frame);
    this.bytes += frameBytes(frame);
    for (const [oldest, old] of this.kept) {
      if (this.bytes <= this.maxBytes || oldest === t) break;
      this.kept.delete(oldest);
      this.bytes -= frameBytes(old);
    }
  }
}
