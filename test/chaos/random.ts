// Chance out of one printed seed. Each part of the suite draws from a branch of its own, so that what one part does
// does not change what another one is dealt.

export interface Random {
  /** From 0 to 1, without 1. */
  next(): number;
  /** Whole, both ends included. */
  int(from: number, to: number): number;
  chance(probability: number): boolean;
  /** Throws for an empty list. */
  pick<T>(items: readonly T[]): T;
  /** A copy in another order. */
  shuffle<T>(items: readonly T[]): T[];
  branch(name: string): Random;
}

export function createRandom(seed: string): Random {
  let state = hash(seed);
  /** mulberry32 */
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    int: (from, to) => from + Math.floor(next() * (to - from + 1)),
    chance: (probability) => next() < probability,
    pick(items) {
      const index = Math.floor(next() * items.length);
      if (index >= items.length) throw new Error("There is nothing to pick from.");
      // The index is one of the list's own.
      return items[index] as (typeof items)[number];
    },
    shuffle: (items) =>
      items
        .map((item) => ({ item, at: next() }))
        .sort((a, b) => a.at - b.at)
        .map(({ item }) => item),
    branch: (name) => createRandom(`${seed}/${name}`),
  };
}

/** FNV-1a */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}
