// What children are called: `coder-refactor-1` is the agent, what it is about, and a number that no other child of the
// thread has.

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

export const instanceName = (agent: string, task: string, number: number) =>
  `${agent}-${slugOf(task)}-${number}`;
