// A maximum that colours can be read against: round, and so slow to fall that colours do not flicker.

const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
const PATIENCE = 15; // frames in a row that need less before it falls

export function roundUp(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return Math.ceil(STEPS.find((step) => step * power >= value)! * power);
}

export class StableMaximum {
  value = 1;
  private recent: number[] = [];

  // Takes the largest value of one frame in, and says whether the maximum has changed.
  see(largest: number): boolean {
    this.recent = [...this.recent.slice(1 - PATIENCE), largest];
    const needed = roundUp(Math.max(...this.recent));
    const old = this.value;
    if (needed > old || (this.recent.length === PATIENCE && needed < old)) this.value = needed;
    return this.value !== old;
  }
}
