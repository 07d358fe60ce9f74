// How many questions wait, beside the link to the inbox and before the title of the page.

import { useEffect } from "preact/hooks";
import { useTouched } from "../frame.ts";
import { questions } from "../questions.ts";

export function InboxCount() {
  const { items, isCut } = useTouched(questions);
  const count = `${items.length}${isCut ? "+" : ""}`;
  const isEmpty = items.length === 0;
  useEffect(() => {
    document.title = isEmpty ? "Skein" : `(${count}) Skein`;
  }, [count, isEmpty]);
  if (isEmpty) return null;
  return (
    <span class="badge">
      <span aria-hidden="true">{count}</span>
      <span class="unseen">{items.length === 1 ? "1 question waits" : `${count} questions wait`}</span>
    </span>
  );
}
