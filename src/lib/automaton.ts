// Finds many texts in one pass (Aho and Corasick, 1975). A state represents the longest prefix of any of the texts that
// the input read so far ends with.

export interface Automaton {
  /** The initial state, which is also the state after input that cannot begin any of the texts. */
  readonly start: number;
  /** Returns the state after one more UTF-16 code unit. */
  step(state: number, code: number): number;
  /** Returns the length of the state's prefix. */
  lengthOf(state: number): number;
  /** Returns the longest of the texts that ends at this state. */
  foundAt(state: number): string | undefined;
  /**
   * Returns the first index, at `from` or later, where one of the texts may begin, or the length of `text` if there is
   * none.
   */
  nextBeginning(text: string, from: number): number;
}

const START = 0;
const CODES = 0x1_0000;

/** The texts must not be empty. */
export function automatonOf(texts: readonly string[]): Automaton {
  /** The transitions: the next state for a state and a code unit. */
  const steps = new Map<number, number>();
  const lengths = [0];
  const found: (string | undefined)[] = [undefined];
  const ways: { readonly from: number; readonly code: number }[] = [{ from: START, code: 0 }];
  const begins = new Uint8Array(CODES);

  for (const text of texts) {
    let state = START;
    begins[text.charCodeAt(0)] = 1;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      let next = steps.get(state * CODES + code);
      if (next === undefined) {
        next = lengths.push(at + 1) - 1;
        ways.push({ from: state, code });
        steps.set(state * CODES + code, next);
      }
      state = next;
    }
    found[state] = text;
  }

  /** For each state, the longest other prefix that the state's prefix ends with. */
  const shorter = new Uint32Array(lengths.length);
  function step(state: number, code: number): number {
    for (let from = state; ; from = shorter[from] ?? START) {
      const next = steps.get(from * CODES + code);
      if (next !== undefined) return next;
      if (from === START) return START;
    }
  }

  const byLength = lengths
    .keys()
    .toArray()
    .sort((a, b) => (lengths[a] ?? 0) - (lengths[b] ?? 0));
  for (const state of byLength) {
    const way = ways[state];
    if (!way || way.from === START) continue;
    const end = step(shorter[way.from] ?? START, way.code);
    shorter[state] = end;
    found[state] ??= found[end];
  }

  return {
    start: START,
    step,
    lengthOf: (state) => lengths[state] ?? 0,
    foundAt: (state) => found[state],
    nextBeginning(text, from) {
      let at = from;
      while (at < text.length && begins[text.charCodeAt(at)] === 0) at++;
      return at;
    },
  };
}
