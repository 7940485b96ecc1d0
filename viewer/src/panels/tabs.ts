// The side panel: tabs, and on a narrow screen a sheet that opens and closes.

import type { Store } from "../store.ts";
import { speak } from "../texts/index.ts";
import { all, byId, label, press, show } from "./page.ts";

export type Tab = "now" | "cell" | "area" | "privacy" | "errors";

export class Tabs {
  current: Tab = "now";
  private listeners: ((tab: Tab) => void)[] = [];
  private readonly buttons = all<HTMLButtonElement>("[role=tab]");

  constructor(private readonly store: Store) {
    const list = this.buttons[0]!.parentElement!;
    list.addEventListener("click", (event) => {
      const button = (event.target as Element).closest("button");
      if (button) this.open(this.nameOf(button));
    });
    list.addEventListener("keydown", (event) => this.move(event));
    press("sheet", () => this.setSheet(!this.isSheetOpen));
    store.watch(["language"], () => this.nameSheet());
    this.open("now", false);
  }

  watch(call: (tab: Tab) => void): void {
    this.listeners.push(call);
    call(this.current);
  }

  open(tab: Tab, sheet = true): void {
    const left = document.activeElement?.closest("[role=tabpanel]");
    this.current = tab;
    for (const button of this.buttons) {
      const chosen = this.nameOf(button) === tab;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      show(this.nameOf(button), chosen);
    }
    this.setSheet(sheet);
    // Whoever worked in the view that went goes along to the new one.
    if (left instanceof HTMLElement && left.hidden) byId(tab).focus();
    byId("panel-body").scrollTop = 0;
    for (const call of this.listeners) call(tab);
  }

  private get isSheetOpen(): boolean {
    return byId("panel").classList.contains("open");
  }

  private setSheet(open: boolean): void {
    byId("panel").classList.toggle("open", open);
    byId("sheet").setAttribute("aria-expanded", String(open));
    this.nameSheet();
  }

  private nameSheet(): void {
    label(byId("sheet"), speak(this.store.now).say(this.isSheetOpen ? "closePanel" : "openPanel"));
  }

  private nameOf(button: HTMLElement): Tab {
    return button.getAttribute("aria-controls") as Tab;
  }

  private move(event: KeyboardEvent): void {
    const usable = this.buttons.filter((button) => !button.hidden);
    const here = usable.findIndex((button) => this.nameOf(button) === this.current);
    const there = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: -1 }[event.key];
    if (there === undefined) return;
    const next = usable.at(there % usable.length)!;
    event.preventDefault();
    this.open(this.nameOf(next));
    next.focus();
  }
}
