// The one way to compare: both are measured one right after the other, repeatedly.

export interface Pair<T> {
  readonly plain: T;
  readonly skein: T;
}

/** Who is first changes with each round. */
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

/** Milliseconds that `work` takes. Throws when it does not give what it should. */
export async function timed(work: () => Promise<number>, gives: number): Promise<number> {
  const began = performance.now();
  const given = await work();
  const ms = performance.now() - began;
  if (given !== gives) throw new Error(`There should have been ${gives}, and there were ${given}.`);
  return ms;
}

/** For each round, how many times the plain way's time is Skein's. */
export const fasterOf = <T>(measured: readonly Pair<T>[], msOf: (value: T) => number): number[] =>
  measured.map(({ plain, skein }) => msOf(plain) / msOf(skein));
