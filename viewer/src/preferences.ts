// Language and theme: as last chosen here, else as the browser has them.

import type { Language, Store, Theme } from "./store.ts";

const LANGUAGES: readonly Language[] = ["en", "de", "zh"];
const THEMES: readonly Theme[] = ["auto", "light", "dark"];

// Storage may be forbidden; then a choice lasts as long as the page.
function recall(name: string): string | null {
  try {
    return localStorage.getItem(`retrasyn.${name}`);
  } catch {
    return null;
  }
}

function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`retrasyn.${name}`, value);
  } catch {
    return;
  }
}

export function preferences(): { language: Language; theme: Theme } {
  const wished = [recall("language"), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return {
    language: LANGUAGES.find((language) => language === wished.find((tag) => LANGUAGES.includes(tag as Language))) ?? "en",
    theme: THEMES.find((theme) => theme === recall("theme")) ?? "auto",
  };
}

export function keepPreferences(store: Store): void {
  store.watch(["language"], ({ language }) => remember("language", language));
  store.watch(["theme"], ({ theme }) => remember("theme", theme));
}
