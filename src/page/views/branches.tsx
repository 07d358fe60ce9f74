// The way between a conversation and its branches: `‹ 2/3 ›`.

import { useTouched } from "../frame.ts";
import { go } from "../routes.ts";
import { branchesOf } from "../thread-groups.ts";
import { threads } from "../threads.ts";

/** Nothing for a thread without branches, and for one that the list has not read. */
export function Branches({ thread }: { thread: string }) {
  const found = branchesOf(useTouched(threads).items, thread);
  if (!found) return null;
  const { of, at } = found;
  const step = (to: number, label: string, mark: string) => {
    const id = of[to]?.id;
    return (
      <button
        type="button"
        class="quiet"
        aria-label={label}
        disabled={id === undefined}
        onClick={() => id !== undefined && go({ view: "thread", thread: id })}
      >
        {mark}
      </button>
    );
  };
  return (
    <nav class="branches" aria-label="Branches">
      {step(at - 1, "The branch before", "‹")}
      <span>
        {at + 1}/{of.length}
      </span>
      {step(at + 1, "The next branch", "›")}
    </nav>
  );
}
