// Colours of the map, in light and in dark. The ramps go one way in lightness, so that they can be
// told apart with any kind of colour vision, and in print.

export type Colour = readonly [red: number, green: number, blue: number, alpha: number]; // 0..1

export interface Palette {
  ground: string; // around and under everything
  road: string;
  ramp: string[]; // from one traveller to the maximum
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
  road: "#2c364a",
  ramp: ["#1a1f3d", "#2c2f6b", "#33508b", "#2d708e", "#20908d", "#2fb47c", "#8bd646", "#fde725"],
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
  road: "#c3cad6",
  ramp: ["#e6eff5", "#c9dfec", "#a3cbe0", "#74b0d0", "#458fbb", "#24699f", "#134a80", "#0a2a55"],
  grid: rgba("#43526b", 0.12),
  edge: rgba("#43526b", 0.5),
  traveller: rgba("#d9480f", 0.92),
  halo: rgba("#ffffff", 0.6),
  arrow: rgba("#c2255c"),
  mark: rgba("#111827"),
  markHalo: rgba("#ffffff", 0.9),
};

// The ramp as it looks through, on the ground.
export function shownRamp({ ramp, ground }: Palette, opacity: number): string[] {
  const below = rgb(ground);
  return ramp.map((stop) => {
    const mixed = rgb(stop).map((part, which) => Math.round(255 * (part * opacity + below[which]! * (1 - opacity))));
    return `rgb(${mixed.join(" ")})`;
  });
}
