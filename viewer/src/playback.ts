// The clock of the page: which moment is shown, and how far the picture is on its way to it.
//
// store.t is the moment the picture shows or is moving to; a step is a transition from one
// moment to another, and the picture between them is the map's to draw.

import type { Frame } from "./frame.ts";
import type { Store } from "./store.ts";

export interface Moment {
  frame: Frame;
  real: Frame | null; // in a simulation, when it is shown
}

export interface Stage {
  show(from: Moment, to: Moment): void;
  progress(share: number): void; // 0 at from, 1 at to
}

export interface Times {
  nearest(t: number): Promise<number | null>;
  next(t: number): Promise<number | null>;
  previous(t: number): Promise<number | null>;
  forget(): void; // ask again next time
}

export interface Moments {
  get(t: number): Promise<Moment>;
  want(times: readonly number[]): void;
}

export interface Clock {
  now(): number; // milliseconds
  frame(call: () => void): void; // before the next picture
  wait(milliseconds: number, call: () => void): void;
}

interface Transition {
  start: number;
  duration: number; // milliseconds
  eased: boolean;
}

const STEP_MS = 250; // a single step by hand
const PAUSE_MS = 200; // what is left of a step when playing stops
const LONGEST_MS = 2000; // to a new release
const RETRY_MS = 1000; // while the server does not answer
const AHEAD_MS = 1500; // how much of the future is fetched while playing
const MAX_AHEAD = 24;

const ease = (share: number) => share * share * (3 - 2 * share);

export class Playback {
  private shown: Moment | null = null;
  private transition: Transition | null = null;
  private order = 0; // counts what was asked for; answers to older questions are dropped
  private ticking = false;

  constructor(
    private readonly store: Store,
    private readonly times: Times,
    private readonly moments: Moments,
    private readonly stage: Stage,
    private readonly clock: Clock,
    private readonly still: () => boolean, // whether motion is unwelcome
  ) {}

  // Shows the newest release and follows it from now on.
  async goLive(): Promise<void> {
    this.store.set({ live: true, playing: true });
    const newest = this.store.now.status.newest_release;
    if (newest !== null) await this.jump(newest);
  }

  async seek(t: number): Promise<void> {
    this.leaveLive();
    const order = ++this.order;
    const nearest = await this.times.nearest(t);
    if (nearest !== null && order === this.order) await this.jump(nearest);
  }

  async step(by: 1 | -1): Promise<void> {
    this.store.set({ live: false, playing: false });
    const order = ++this.order;
    const from = this.store.now.t;
    const t = await (by > 0 ? this.times.next(from) : this.times.previous(from));
    if (t !== null && order === this.order) await this.jump(t, STEP_MS);
  }

  // Plays history from here; from the beginning if there is nothing after here.
  async play(): Promise<void> {
    if (this.store.now.playing) return;
    this.store.set({ playing: true, live: false });
    const order = ++this.order;
    const t = this.store.now.t;
    if ((await this.times.next(t)) === null && order === this.order) {
      const first = await this.times.nearest(-Infinity);
      if (first !== null && first !== t && order === this.order) return this.jump(first);
    }
    if (order === this.order && !this.transition) await this.advance(this.clock.now());
  }

  // The picture arrives at store.t, and stays.
  pause(): void {
    this.order += 1;
    this.store.set({ playing: false, live: false });
    this.retime(PAUSE_MS);
  }

  setSpeed(speed: number): void {
    this.store.set({ speed });
    if (this.store.now.playing && !this.store.now.live) this.retime(1000 / speed);
  }

  // A new release. When several come at once only the last one is shown.
  async arrived(t: number): Promise<void> {
    if (!this.store.now.live || t === this.shown?.frame.t) return;
    if (!this.transition) await this.follow(t);
  }

  // The same moment again, for example now with the real data.
  async refresh(): Promise<void> {
    if (this.shown) await this.jump(this.shown.frame.t);
    else if (this.store.now.live) await this.goLive();
  }

  private leaveLive(): void {
    if (this.store.now.live) this.store.set({ live: false, playing: false });
  }

  private async jump(t: number, duration = 0): Promise<void> {
    const order = ++this.order;
    this.moments.want([t]);
    const moment = await this.fetch(t);
    if (!moment || order !== this.order) return;
    this.begin(moment, duration, true, this.clock.now());
  }

  private async follow(t: number): Promise<void> {
    const { period } = this.store.now.status;
    // A little faster than releases come, so that the picture has arrived before the next one.
    const duration = Math.min(0.9 * period * 1000, LONGEST_MS);
    const order = ++this.order;
    const moment = await this.fetch(t);
    if (moment && order === this.order) this.begin(moment, duration, period * 1000 > LONGEST_MS, this.clock.now());
  }

  private async fetch(t: number): Promise<Moment | null> {
    try {
      return await this.moments.get(t);
    } catch {
      return null; // dropped, or the server is away; what is shown stays
    }
  }

  private begin(to: Moment, duration: number, eased: boolean, start: number): void {
    const from = duration > 0 && this.shown ? this.shown : to;
    this.shown = to;
    this.transition = { start, duration: from === to ? 0 : duration, eased };
    this.stage.show(from, to);
    this.store.set({ t: to.frame.t, frame: to.frame, realFrame: to.real });
    this.draw();
    this.tick();
  }

  // The rest of this step at another pace, from where the picture is.
  private retime(duration: number): void {
    if (!this.transition?.duration) return;
    const now = this.clock.now();
    const share = Math.min((now - this.transition.start) / this.transition.duration, 1);
    this.transition = { ...this.transition, duration, start: now - share * duration };
  }

  private draw(): void {
    const { start, duration, eased } = this.transition!;
    const share = duration > 0 && !this.still() ? Math.min((this.clock.now() - start) / duration, 1) : 1;
    this.stage.progress(eased ? ease(Math.max(share, 0)) : Math.max(share, 0));
  }

  // One picture after another while something moves; none while nothing does.
  private tick(): void {
    if (this.ticking) return;
    this.ticking = true;
    this.clock.frame(() => {
      this.ticking = false;
      if (!this.transition) return;
      this.draw();
      const end = this.transition.start + this.transition.duration;
      if (this.clock.now() < end) return this.tick();
      this.transition = null;
      void this.arrive(end);
    });
  }

  private async arrive(end: number): Promise<void> {
    const { playing, live, status, t } = this.store.now;
    if (live) {
      if (status.newest_release !== null && status.newest_release !== t) await this.follow(status.newest_release);
    } else if (playing) await this.advance(end);
  }

  // To the next release; further when pictures come more slowly than timestamps have to pass.
  private async advance(due: number): Promise<void> {
    const order = ++this.order;
    const duration = 1000 / this.store.now.speed;
    const late = Math.floor((this.clock.now() - due) / duration);
    let t: number | null = this.store.now.t;
    const ahead: number[] = [];
    const steps = 1 + Math.min(late, MAX_AHEAD);
    const wanted = steps + Math.min(Math.ceil(AHEAD_MS / duration) + 1, MAX_AHEAD);
    try {
      while (ahead.length < wanted && (t = await this.times.next(t)) !== null) ahead.push(t);
    } catch {
      return this.tryLater(order);
    }
    if (order !== this.order) return;
    const target = ahead[Math.min(steps, ahead.length) - 1];
    if (target === undefined) return this.store.now.info.unfolds ? this.goLive() : this.pause();
    const soon = ahead.slice(ahead.indexOf(target));
    this.moments.want(soon);
    const moment = await this.fetch(target);
    if (order !== this.order) return;
    if (!moment) return this.tryLater(order);
    const now = this.clock.now();
    // Go on from where the last step ended, unless the frame had to be waited for.
    const start = now - due < duration ? due : now;
    this.begin(moment, duration, false, start);
  }

  // The server is away, or has thrown this moment away meanwhile.
  private tryLater(order: number): void {
    this.clock.wait(RETRY_MS, () => {
      if (order !== this.order || !this.store.now.playing) return;
      this.times.forget();
      void this.advance(this.clock.now());
    });
  }
}
