// A list of cells with bars; each can be chosen. Rows are kept, so that focus stays while time goes on.

import { make } from "./page.ts";

export interface Ranked {
  cell: number;
  name: string;
  n: number;
  text: string;
}

export class Ranking {
  private shown: readonly Ranked[] = [];

  constructor(
    private readonly place: HTMLElement,
    choose: (cell: number) => void,
  ) {
    place.addEventListener("click", (event) => {
      const row = (event.target as Element).closest("li");
      const ranked = row && this.shown[[...place.children].indexOf(row)];
      if (ranked) choose(ranked.cell);
    });
  }

  clear(): void {
    this.shown = [];
    this.place.replaceChildren();
  }

  show(rows: readonly Ranked[], chosen: number | null, nobody: string): void {
    const { place } = this;
    this.shown = rows;
    if (!rows.length) return place.replaceChildren(make("li", "none", nobody));
    if (place.querySelector(".none")) place.replaceChildren();
    while (place.children.length > rows.length) place.lastElementChild!.remove();
    while (place.children.length < rows.length) place.append(this.row());
    const top = Math.max(...rows.map(({ n }) => n), 1);
    rows.forEach(({ cell, name, n, text }, i) => {
      const button = place.children[i]!.firstElementChild as HTMLElement;
      const [bar, title, value] = [...button.children] as HTMLElement[];
      bar!.style.width = `${(n / top) * 100}%`;
      title!.textContent = name;
      value!.textContent = text;
      if (cell === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  }

  private row(): HTMLLIElement {
    const button = make("button", "", make("i"), make("b"), make("span"));
    button.type = "button";
    return make("li", "", button);
  }
}
