// Replaces many texts in one pass with an automaton. The time is linear in the input and does not depend on the number
// of texts. Overlapping texts are replaced together. Input can arrive in pieces, with the same result as for the whole
// text.

import { type Automaton, automatonOf } from "./automaton.ts";

export interface StreamReplacer {
  /** Returns the text so far, except for an ending that may begin one of the texts to replace. */
  push(text: string): string;
  /** Returns the rest of the text that `push` has held back. */
  end(): string;
}

/** `words` maps each non-empty text to its replacement. Each call of the result starts a new input. */
export function replacer(words: ReadonlyMap<string, string>): () => StreamReplacer {
  const automaton = automatonOf([...words.keys()]);
  return () => replacing(automaton, words);
}

/** A range of the kept text to replace. If it overlaps the last replacement, it begins before the kept text. */
interface Part {
  readonly start: number;
  readonly end: number;
  readonly word: string;
}

/** Returns a function that replaces all texts in one input. */
export function replacingAll(words: ReadonlyMap<string, string>): (text: string) => string {
  const begin = replacer(words);
  return (text) => {
    const reading = begin();
    return reading.push(text) + reading.end();
  };
}

function replacing(automaton: Automaton, words: ReadonlyMap<string, string>): StreamReplacer {
  let state = automaton.start;
  /** The text that was read but not returned yet. */
  let held = "";
  let parts: Part[] = [];

  function read(text: string): void {
    let at = held.length;
    held += text;
    while (at < held.length) {
      if (state === automaton.start) at = automaton.nextBeginning(held, at);
      if (at === held.length) return;
      state = automaton.step(state, held.charCodeAt(at++));
      const found = automaton.foundAt(state);
      if (found !== undefined) add(at - found.length, at, words.get(found) ?? "");
    }
  }

  /** Joins a range with the earlier ranges that it overlaps. */
  function add(from: number, end: number, itsWord: string): void {
    let [start, word] = from < 0 ? [from, ""] : [from, itsWord];
    for (let last = parts.at(-1); last && last.end > start; last = parts.at(-1)) {
      if (last.start <= start) ({ start, word } = last);
      parts.pop();
    }
    parts.push({ start, end, word });
  }

  /**
   * Returns everything before `until`, and the whole range that begins there, if any. Later ranges can still be joined.
   */
  function take(until: number): string {
    const first = parts.findIndex(({ start }) => start > until);
    const done = parts.splice(0, first === -1 ? parts.length : first);
    let taken = "";
    let from = 0;
    for (const { start, end, word } of done) {
      taken += held.slice(from, Math.max(from, start)) + word;
      from = end;
    }
    const rest = Math.max(from, until, 0);
    taken += held.slice(from, rest);
    held = held.slice(rest);
    parts = parts.map(({ start, end, word }) => ({ start: start - rest, end: end - rest, word }));
    return taken;
  }

  return {
    push(text) {
      read(text);
      return take(held.length - automaton.lengthOf(state));
    },
    end() {
      const taken = take(held.length);
      state = automaton.start;
      return taken;
    },
  };
}
