// What children are called: `coder-refactor-1` is the agent, what it is about, and a number that nobody else of the family
// has. The children of that one are `1.1`, `1.2` and so on.

const STOP_WORDS = new Set(
  "the and for you your with this that from into please can could would should need have has are was will all its our any not but use".split(
    " ",
  ),
);
const MAX_CHARS = 12;

/** The first word of a task that says something, at most twelve letters of it. */
function slugOf(task: string): string {
  const words = task.toLowerCase().match(/[a-z0-9]{3,}/g) ?? [];
  return words.find((word) => !STOP_WORDS.has(word))?.slice(0, MAX_CHARS) ?? "task";
}

interface Named {
  readonly agent: string;
  readonly task: string;
  /** Counts the children of its parent. */
  readonly number: number;
  /** What its parent is called, if that works for another one. */
  readonly parent: string | undefined;
}

export function instanceName({ agent, task, number, parent }: Named): string {
  const counter = parent === undefined ? number : `${counterIn(parent)}.${number}`;
  return `${agent}-${slugOf(task)}-${counter}`;
}

const counterIn = (name: string) => name.slice(name.lastIndexOf("-") + 1);
