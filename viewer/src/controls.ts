// What panels may ask of the map and of the clock; what they show they read from the store.

export interface Legend {
  max: number; // travellers in a cell that has the last colour; a round number
  stops: string[]; // CSS colours from nobody to max, equally far apart on the ramp
  scale: "sqrt"; // a cell with n has the colour at sqrt(n / max) of the ramp
}

// Names of the ways to use the map by keyboard, for the help text in every language.
export const MAP_KEYS = {
  select: ["Enter", "Space"], // inspect the cell in the middle of the map
  move: ["←", "↑", "↓", "→"], // with a cell selected: go to its neighbour; without: pan
  pan: ["Shift+←", "Shift+↑", "Shift+↓", "Shift+→"], // always pan
  zoom: ["+", "−"],
  fit: ["0"], // the whole campaign
  leave: ["Escape"], // stop drawing, or forget the selected cell
} as const;

export interface Controls {
  seek(t: number): void; // to the nearest release there is; leaves live
  step(by: 1 | -1): void; // to the next or the previous release; leaves live
  play(): void;
  pause(): void;
  goLive(): void;
  setSpeed(timestampsPerSecond: number): void;

  zoomIn(): void;
  zoomOut(): void;
  fit(): void;
  selectCell(cell: number | null): void;
  startBox(): void; // the next drag on the map draws a box
  clearBox(): void; // forgets the box, and stops drawing one

  legend(): Legend;
  watchLegend(call: (legend: Legend) => void): void; // at once, and again whenever it has changed
}
