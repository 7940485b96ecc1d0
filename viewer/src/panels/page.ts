// The page's own elements, found by their names, and new ones.

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found as T;
}

export const all = <T extends Element = HTMLElement>(selector: string) => [...document.querySelectorAll<T>(selector)];

export function write(id: string, text: string): void {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
}

// A figure, or the one before in grey while the new one is on its way.
export function writeFigure(id: string, text: string | null): void {
  byId(id).classList.toggle("old", text === null);
  if (text !== null) write(id, text);
}

export const show = (id: string, shown: boolean) => void (byId(id).hidden = !shown);

export const press = (id: string, call: () => void) => byId(id).addEventListener("click", call);

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

// A name for those who hear it and, while the pointer rests, for those who see it.
export function label(element: Element, text: string): void {
  element.setAttribute("aria-label", text);
  if (element.matches("button")) element.setAttribute("title", text);
}
