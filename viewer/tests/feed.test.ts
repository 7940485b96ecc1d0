import assert from "node:assert/strict";
import { test } from "node:test";
import type { Release } from "../src/api.ts";
import { mergeReleases } from "../src/feed.ts";

const releases = (...times: number[]) => times.map((t) => ({ t }) as Release);

test("releases that come twice or late are in order and there once", () => {
  const merged = mergeReleases(releases(1, 2, 5), releases(2, 3, 4));
  assert.deepEqual(merged.map(({ t }) => t), [1, 2, 3, 4, 5]);
});

test("only the latest releases are remembered", () => {
  const merged = mergeReleases(releases(...Array(1000).keys()), releases(1000, 1001));
  assert.deepEqual([merged.length, merged[0]!.t, merged.at(-1)!.t], [1000, 2, 1001]);
});
