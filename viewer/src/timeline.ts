// Which timestamps were released. The history may be long and have holes; it is asked for in blocks.

const BLOCK = 1000; // as many as the server tells at once

type Ask = (first: number, last: number) => Promise<number[]>;

export class Timeline {
  private readonly blocks = new Map<number, Promise<number[]>>();

  constructor(
    private readonly ask: Ask, // the released timestamps of a range, ascending
    private readonly ends: () => [oldest: number, newest: number] | null,
  ) {}

  // A release that was heard of; one that leaves a gap makes what is known of its block doubtful.
  add(t: number): void {
    const number = Math.floor(t / BLOCK);
    const block = this.blocks.get(number);
    if (block) this.blocks.set(number, block.then((times) => (t > (times.at(-1) ?? -1) ? [...times, t] : times)));
  }

  // After silence anything may have happened.
  forget(): void {
    this.blocks.clear();
  }

  next(t: number): Promise<number | null> {
    return this.search(t + 1, 1);
  }

  previous(t: number): Promise<number | null> {
    return this.search(t - 1, -1);
  }

  async nearest(t: number): Promise<number | null> {
    const ends = this.ends();
    if (!ends) return null;
    const place = Math.min(Math.max(Math.round(t), ends[0]), ends[1]);
    const [below, above] = [await this.search(place, -1), await this.search(place, 1)];
    if (below === null || above === null) return below ?? above;
    return place - below <= above - place ? below : above;
  }

  // The first release at or after t (step 1), or the last one at or before it (step -1).
  private async search(t: number, step: 1 | -1): Promise<number | null> {
    const ends = this.ends();
    if (!ends) return null;
    const [first, last] = [Math.floor(ends[0] / BLOCK), Math.floor(ends[1] / BLOCK)];
    const start = Math.min(Math.max(Math.floor(t / BLOCK), first), last);
    for (let number = start; number >= first && number <= last; number += step) {
      const times = await this.block(number);
      const found = step > 0 ? times.find((time) => time >= t) : times.findLast((time) => time <= t);
      if (found !== undefined) return found;
    }
    return null;
  }

  private block(number: number): Promise<number[]> {
    let block = this.blocks.get(number);
    if (!block) {
      block = this.ask(number * BLOCK, number * BLOCK + BLOCK - 1);
      this.blocks.set(number, block);
      block.catch(() => this.blocks.delete(number));
    }
    return block;
  }
}
