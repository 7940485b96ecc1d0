// Cells by name, as the report names them: columns by letter from the west, rows by number from the south.

import type { State } from "../store.ts";

export function columnName(column: number): string {
  const letter = String.fromCharCode(65 + (column % 26));
  return column < 26 ? letter : columnName(Math.floor(column / 26) - 1) + letter;
}

export const cellName = (cell: number, side: number) => columnName(cell % side) + (Math.floor(cell / side) + 1);

// With the name that the base map has for it.
export function calledCell(cell: number, { names, status }: Pick<State, "names" | "status">): string {
  const name = names.get(cell);
  return cellName(cell, status.grid) + (name ? ` ${name}` : "");
}

// The fullest cells, fullest first; of equally full ones the first.
export function busiest(counts: ArrayLike<number>, n: number): number[] {
  const cells = Array.from(counts, (_, cell) => cell).filter((cell) => counts[cell]! > 0);
  return cells.sort((a, b) => counts[b]! - counts[a]! || a - b).slice(0, n);
}
