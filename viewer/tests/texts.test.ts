import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import type { Status } from "../src/api.ts";
import { type Account, judge, stateGuarantee, translateOpen } from "../src/panels/privacy.ts";
import { de, german } from "../src/texts/de.ts";
import { en } from "../src/texts/en.ts";
import { fill, Speech } from "../src/texts/index.ts";
import { chinese, zh } from "../src/texts/zh.ts";

const names = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
const status = {
  guarantee:
    "For one person and any 20 consecutive positions, everything sent about them is 1-locally differentially private in total, for any two sequences with the same presence.",
  epsilon: 1.5,
  window: 20,
  unit: "position",
  presence: "count",
  period: 300,
  epoch: 1_772_236_800,
} as Status;

test("every language fills in the same values", () => {
  for (const [name, words] of Object.entries({ de, zh })) {
    for (const key of Object.keys(en) as (keyof typeof en)[]) {
      assert.ok(words[key], `${name} has no text for ${key}`);
      assert.deepEqual(names(words[key]), names(en[key]), `${name}: ${key}`);
    }
  }
});

test("every text the page asks for is there", async () => {
  const page = await readFile("src/index.html", "utf8");
  const asked = [...page.matchAll(/data-(?:text|label)="(\w+)"/g)].map(([, key]) => key!);
  assert.ok(asked.length > 50);
  assert.deepEqual(asked.filter((key) => !(key in en)), []);
});

test("the page has no inline script or style", async () => {
  const page = await readFile("src/index.html", "utf8");
  assert.doesNotMatch(page, /\sstyle=|<style|\son\w+=|<script(?![^>]*src=)|data:|https?:/);
});

test("what a receipt says is not protected is translated", async () => {
  const source = await readFile("../src/retrasyn/privacy/receipt.py", "utf8");
  // Strings that Python puts together stand in one expression, line after line.
  const joined = source.replace(/"\s*\n\s*"/g, "");
  for (const statements of [german, chinese]) {
    for (const line of Object.keys(statements.notProtected)) {
      assert.ok(joined.includes(`"${line}"`), `the receipt no longer says: ${line}`);
    }
    const told = [...joined.matchAll(/^ +"([^"]+)": \(?/gm), ...joined.matchAll(/^(?:_\w+ = |    )"([^"]+)",?$/gm)];
    // How presence is treated, and what a number as seed means, stand in the same file, and are not shown here.
    const lines = told.map(([, line]) => line!).filter((line) => line.includes(" "));
    assert.ok(lines.length > 10);
    assert.deepEqual(lines.filter((line) => !/^(;|count:|flags:|hidden:|all noise)/.test(line) && !(line in statements.notProtected)), []);
  }
});

test("after how many nights a usual place is known is told in the reader's language", () => {
  const line = "long-run repetition: linked reports tell a usual place after about 1 night (19 reports, 6.65 hours at one place); devices stop at epsilon 18";
  const place = { reports: 19, timestamps: 399, nights: 1, lifetime_cap: 18 };
  assert.equal(translateOpen(line, place, new Speech("en")), undefined);
  assert.match(translateOpen(line, place, new Speech("de"))!, /19 Meldungen .*etwa 1\).* ε 18 /);
  assert.match(translateOpen(line, place, new Speech("zh"))!, /19 次.*约 1 晚.* 18 /);
  assert.match(translateOpen(line, { ...place, nights: null }, new Speech("de"))!, /399 Zeitschritte/);
  assert.equal(translateOpen("two devices of one person", place, new Speech("de")), "zwei Geräte einer Person");
  assert.match(translateOpen("long-run repetition: a position held for k windows is reported up to k times", null, new Speech("de"))!, /k-mal/);
});

test("a number as the seed is said first, unless worse is to be said", () => {
  const account = { private: true, within_guarantee: true, seed: null } as Account;
  assert.deepEqual(judge(status, account), ["promiseKept", false]);
  assert.deepEqual(judge(status, { ...account, seed: 0 }), ["promiseGuessable", true]);
  assert.deepEqual(judge(status, { ...account, seed: 0, within_guarantee: false }), ["promiseExceeded", true]);
  assert.deepEqual(judge(status, { ...account, seed: 0, within_guarantee: false, private: false }), ["promiseBroken", true]);
  const told = (guarantee: string) => judge({ ...status, guarantee }, null);
  assert.deepEqual(told(status.guarantee), ["promiseKept", false]);
  assert.deepEqual(told("NOT PRIVATE: true frequencies were used."), ["promiseBroken", true]);
  const seeded = `NOT PRIVATE AGAINST A READER WHO GUESSES THE SEED: so. ${status.guarantee}`;
  assert.deepEqual(told(seeded), ["promiseGuessable", true]);
  assert.equal(stateGuarantee({ ...status, guarantee: seeded }, new Speech("de"))[1], "de");
});

test("the guarantee is told in the reader's language, the server's words in English", () => {
  assert.deepEqual(stateGuarantee(status, new Speech("en")), [status.guarantee, "en"]);
  const [sentence, language] = stateGuarantee(status, new Speech("de"));
  assert.equal(language, "de");
  assert.match(sentence, /^Für jede Person und je 20 aufeinanderfolgende Positionen .* 1,5-lokal .* gleicher Anwesenheit\.$/);
  assert.match(stateGuarantee({ ...status, presence: "hidden" }, new Speech("zh"))[0], /20 个位置.*1\.5-本地差分隐私.*在场情况也可不同/);
});

test("a guarantee we do not know is shown as the server says it", () => {
  const broken = { ...status, guarantee: "NOT PRIVATE: true frequencies were used. Never publish this output." };
  assert.deepEqual(stateGuarantee(broken, new Speech("de")), [broken.guarantee, "en"]);
});

test("numbers and times follow the language", () => {
  assert.equal(new Speech("de").number(48210), "48.210");
  assert.equal(new Speech("en").number(48210), "48,210");
  assert.equal(new Speech("en", "en-GB").number(0.02113, 4), "0.0211");
  assert.match(new Speech("de").time(status, 1), /^\d\d:\d5$/);
});

test("a number is told with how far it may be off, where that is known", () => {
  const speech = new Speech("de");
  assert.equal(speech.about({ n: 30, low: 18, high: 42 }), "30 ± 12");
  assert.equal(speech.about({ n: 13.25, low: 6.5, high: 20 }), "13,3 ± 6,8");
  assert.equal(speech.about({ n: 213.25, low: 206.5, high: 220 }), "213 ± 7");
  assert.equal(speech.about({ n: 1200, low: 1199.7, high: 1200.3 }), "1.200 ± 0,3");
  assert.equal(speech.about({ n: 1200 }), "1.200");
  assert.equal(speech.about({ n: 30, low: 20, high: 50 }), "30 ± 15");
  assert.equal(speech.range({ n: 30, low: 18.25, high: 45 }), "18,3 bis 45 in neun von zehn Fällen");
  assert.equal(speech.range({ n: 1200 }), "");
  assert.equal(speech.about({ n: 1200, low: 1200, high: 1200 }), "1.200");
});

test("without a clock timestamps have numbers", () => {
  const recorded = { ...status, epoch: 0 };
  const speech = new Speech("en");
  assert.equal(speech.moment(recorded, 1234), "Timestamp 1,234");
  assert.equal(speech.date(recorded, 1234), "");
  assert.equal(speech.end(recorded, 3, { first: 0, last: 9 }), "3");
});

test("a stretch of more than a day has days at its ends", () => {
  const speech = new Speech("en", "en-GB");
  assert.match(speech.end(status, 0, { first: 0, last: 12 }), /^\d\d:\d\d$/);
  assert.match(speech.end(status, 0, { first: 0, last: 600 }), /Feb/);
});

test("an unknown value stays visible", () => {
  assert.equal(fill("{n} of {m}", { n: 1 }), "1 of {m}");
});
