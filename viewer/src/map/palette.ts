// Colours of the map, in light and in dark. The ramps go one way in lightness, so that they can be
// told apart with any kind of colour vision, and in print.

export type Colour = readonly [red: number, green: number, blue: number, alpha: number]; // 0..1

export interface Palette {
  ground: string; // around and under everything
  road: Colour;
  ramp: string[]; // from one traveller to the maximum
  hatch: Colour; // over cells that may be chance
  grid: Colour;
  edge: Colour; // of the box
  traveller: Colour;
  halo: Colour; // around travellers and arrows, so that they show on any cell
  arrow: Colour;
  mark: Colour; // the selected cell and the drawn box
  markHalo: Colour;
}

const rgba = (hex: string, alpha = 1): Colour => {
  const [red, green, blue] = rgb(hex);
  return [red, green, blue, alpha];
};

export function rgb(hex: string): [number, number, number] {
  const value = parseInt(hex.slice(1), 16);
  return [(value >> 16) / 255, ((value >> 8) & 255) / 255, (value & 255) / 255];
}

export const RAMP_STOPS = 8;

export const DARK: Palette = {
  ground: "#0b0f17",
  road: rgba("#b9c7e6", 0.2),
  ramp: ["#1a1f3d", "#2c2f6b", "#33508b", "#2d708e", "#20908d", "#2fb47c", "#8bd646", "#fde725"],
  hatch: rgba("#c3cde0", 0.5),
  grid: rgba("#8ea3c8", 0.1),
  edge: rgba("#8ea3c8", 0.45),
  traveller: rgba("#fff6e0", 0.92),
  halo: rgba("#070a12", 0.6),
  arrow: rgba("#ffffff"),
  mark: rgba("#ffffff"),
  markHalo: rgba("#05070c", 0.8),
};

export const LIGHT: Palette = {
  ground: "#f6f7f9",
  road: rgba("#1c2b45", 0.2),
  ramp: ["#e9f1f7", "#d3e4f0", "#b3d2e7", "#8bbad9", "#5f9dc8", "#3a7db2", "#1f5c95", "#0b3768"],
  hatch: rgba("#43526b", 0.5),
  grid: rgba("#43526b", 0.12),
  edge: rgba("#43526b", 0.5),
  traveller: rgba("#ea580c", 0.95),
  halo: rgba("#ffffff", 0.6),
  arrow: rgba("#c2255c"),
  mark: rgba("#111827"),
  markHalo: rgba("#ffffff", 0.9),
};
