import assert from "node:assert/strict";
import { test } from "node:test";
import { type Moment, Playback } from "../src/playback.ts";
import { Timeline } from "../src/timeline.ts";
import { someFrame, someStore } from "./some.ts";

const settled = async () => {
  for (let turn = 0; turn < 200; turn++) await Promise.resolve();
};

// A page whose clock only moves when told to, with a picture every 50 milliseconds.
function page({ released, still = false, ...state }: { released: number[]; still?: boolean } & Parameters<typeof someStore>[0]) {
  const store = someStore(state);
  const shown: string[] = [];
  const away = new Set<number>();
  let now = 0;
  let share = 0;
  let frames: (() => void)[] = [];
  let waits: { at: number; call: () => void }[] = [];
  const playback = new Playback(
    store,
    new Timeline(
      async (first, last) => released.filter((t) => t >= first && t <= last),
      () => (released.length ? [released[0]!, released.at(-1)!] : null),
    ),
    {
      get: async (t): Promise<Moment> => {
        if (away.has(t)) throw new Error("away");
        return { frame: someFrame({ t }), real: null };
      },
      want: () => undefined,
    },
    {
      show: (from, to) => shown.push(`${from.frame.t}>${to.frame.t}`),
      progress: (value) => (share = value),
    },
    {
      now: () => now,
      frame: (call) => frames.push(call),
      wait: (milliseconds, call) => waits.push({ at: now + milliseconds, call }),
    },
    () => still,
  );
  const pass = async (milliseconds: number) => {
    for (const end = now + milliseconds; now < end; ) {
      now += 50;
      const [due, later] = [waits.filter(({ at }) => at <= now), waits.filter(({ at }) => at > now)];
      const calls = [...frames, ...due.map(({ call }) => call)];
      [frames, waits] = [[], later];
      for (const call of calls) call();
      await settled();
    }
  };
  const release = async (t: number) => {
    released.push(t);
    store.set({ status: { ...store.now.status, newest_release: t } });
    void playback.arrived(t);
    await settled();
  };
  return { store, playback, shown, away, pass, release, share: () => share, idle: () => frames.length === 0 };
}

test("live: the newest is shown, a new release is moved to, then nothing moves", async () => {
  const live = page({ released: [0, 1, 2], newest: 2 });
  await live.playback.goLive();
  await live.pass(100);
  assert.deepEqual(live.shown, ["2>2"]);
  assert.ok(live.idle());
  await live.release(3);
  assert.equal(live.store.now.t, 3);
  await live.pass(1000);
  assert.ok(live.share() > 0.4 && live.share() < 0.6);
  await live.pass(1100);
  assert.equal(live.share(), 1);
  assert.ok(live.idle());
  assert.deepEqual(live.shown, ["2>2", "2>3"]);
});

test("live: of releases that come faster than the picture only the newest is moved to", async () => {
  const live = page({ released: [0], newest: 0 });
  await live.playback.goLive();
  await live.pass(100);
  await live.release(1);
  await live.release(2);
  await live.release(3);
  await live.pass(2500);
  assert.deepEqual(live.shown, ["0>0", "0>1", "1>3"]);
});

test("history plays at its speed, skips holes and then follows", async () => {
  const history = page({ released: [0, 1, 4, 5], newest: 5, speed: 2 });
  await history.playback.seek(0);
  await history.playback.play();
  await settled();
  assert.equal(history.store.now.live, false);
  await history.pass(1250);
  assert.equal(history.store.now.t, 5);
  assert.ok(Math.abs(history.share() - 0.5) < 0.11);
  await history.pass(500);
  assert.deepEqual(history.shown.slice(0, 4), ["0>0", "0>1", "1>4", "4>5"]);
  assert.ok(history.store.now.live);
});

test("what is all there stops at its end", async () => {
  const info = { ...someStore({ newest: 1 }).now.info, unfolds: false };
  const recording = page({ released: [0, 1], newest: 1, speed: 2, info });
  await recording.playback.seek(0);
  await recording.playback.play();
  await recording.pass(2000);
  const { t, live, playing } = recording.store.now;
  assert.deepEqual({ t, live, playing }, { t: 1, live: false, playing: false });
});

test("more timestamps a second than pictures: some are passed over", async () => {
  const released = Array.from({ length: 100 }, (_, t) => t);
  const fast = page({ released, newest: 99, speed: 40 });
  await fast.playback.seek(0);
  await fast.playback.play();
  await fast.pass(1000);
  assert.ok(Math.abs(fast.store.now.t - 40) <= 4, `at ${fast.store.now.t}`);
});

test("play at the end starts from the beginning", async () => {
  const history = page({ released: [0, 1, 2], newest: 2 });
  await history.playback.seek(2);
  await history.playback.play();
  await settled();
  assert.equal(history.store.now.t, 0);
});

test("pause: the picture arrives soon and stays; live is left", async () => {
  const slow = page({ released: [0, 1, 2], newest: 2, speed: 0.25 });
  await slow.playback.seek(0);
  await slow.playback.play();
  await slow.pass(1000);
  slow.playback.pause();
  await slow.pass(300);
  assert.equal(slow.share(), 1);
  assert.deepEqual([slow.store.now.t, slow.store.now.playing], [1, false]);
  await slow.pass(5000);
  assert.equal(slow.store.now.t, 1);
  assert.ok(slow.idle());
});

test("a seek leaves live, goes to the nearest release and drops an older seek", async () => {
  const history = page({ released: [0, 1, 7], newest: 7 });
  await history.playback.goLive();
  const first = history.playback.seek(0);
  const second = history.playback.seek(5);
  await Promise.all([first, second]);
  assert.deepEqual(history.shown, ["7>7", "7>7"]);
  assert.deepEqual([history.store.now.live, history.store.now.playing], [false, false]);
});

test("steps go to the neighbours", async () => {
  const history = page({ released: [0, 3, 7], newest: 7 });
  await history.playback.goLive();
  await history.playback.step(-1);
  assert.equal(history.store.now.t, 3);
  await history.playback.step(1);
  assert.equal(history.store.now.t, 7);
  await history.playback.step(1);
  assert.equal(history.store.now.t, 7);
});

test("without motion the picture jumps", async () => {
  const calm = page({ released: [0], newest: 0, still: true });
  await calm.playback.goLive();
  await calm.release(1);
  assert.equal(calm.share(), 1);
});

test("a server that is away is waited for, and playing goes on", async () => {
  const history = page({ released: [0, 1, 2, 3], newest: 3 });
  await history.playback.seek(0);
  history.away.add(1);
  await history.playback.play();
  await history.pass(3000);
  assert.deepEqual([history.store.now.t, history.store.now.playing], [0, true]);
  history.away.clear();
  await history.pass(1500);
  assert.ok(history.store.now.t >= 1);
});
