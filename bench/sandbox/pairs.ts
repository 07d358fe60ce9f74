// Compares two ways by measuring one right after the other, repeatedly.

export interface Pair<T> {
  readonly plain: T;
  readonly skein: T;
}

/** The order alternates between rounds. */
export async function pairs<T>(
  rounds: number,
  plain: () => Promise<T>,
  skein: () => Promise<T>,
): Promise<Pair<T>[]> {
  const measured: Pair<T>[] = [];
  for (let round = 0; round < rounds; round++) {
    const isPlainFirst = round % 2 === 0;
    const first = await (isPlainFirst ? plain : skein)();
    const second = await (isPlainFirst ? skein : plain)();
    measured.push(isPlainFirst ? { plain: first, skein: second } : { plain: second, skein: first });
  }
  return measured;
}

/** Returns how many milliseconds `work` takes. Throws if its result is not the expected one. */
export async function timed(work: () => Promise<number>, gives: number): Promise<number> {
  const began = performance.now();
  const given = await work();
  const ms = performance.now() - began;
  if (given !== gives) throw new Error(`Expected ${gives}, but got ${given}.`);
  return ms;
}

/** Returns how many times as long the plain way takes as Skein, for each round. */
export const fasterOf = <T>(measured: readonly Pair<T>[], msOf: (value: T) => number): number[] =>
  measured.map(({ plain, skein }) => msOf(plain) / msOf(skein));
