// Recent deletions, each with an Undo button.

import { Problem, visible } from "../components.tsx";
import { deletions, forgetDeletion } from "../deletions.ts";
import { useTouched } from "../frame.ts";
import { go } from "../routes.ts";
import { t } from "../texts.ts";

export function Undo() {
  const { items } = useTouched(deletions);
  const words = t().deletion;
  return (
    <section class="undo" role="status" aria-label={words.deleted}>
      {items.map(({ thread, title, problem }) => (
        <p key={thread}>
          <span>{words.of(visible(title))}</span>
          <Problem>{problem ?? ""}</Problem>
          <button
            type="button"
            onClick={() => {
              forgetDeletion(thread);
              if (!problem) go({ view: "thread", thread });
            }}
          >
            {problem ? words.dismiss : words.undo}
          </button>
        </p>
      ))}
    </section>
  );
}
