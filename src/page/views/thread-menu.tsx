// The actions on a thread in the list: rename it, suggest a title, or delete it.

import { useState } from "preact/hooks";
import type { FoundThread } from "../../client/client.ts";
import { Action, Dialog, Problem, visible } from "../components.tsx";
import { deleteSoon } from "../deletions.ts";
import { go } from "../routes.ts";
import { client, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { readThreads } from "../threads.ts";

export interface ThreadMenuProps {
  readonly thread: FoundThread;
  /** True if it is the open thread. */
  readonly isCurrent: boolean;
  readonly onClose: () => void;
}

export function ThreadMenu({ thread, isCurrent, onClose }: ThreadMenuProps) {
  const words = t().threadMenu;
  const [title, setTitle] = useState(thread.title ?? "");
  const [problem, setProblem] = useState("");
  const rename = async (event: Event) => {
    event.preventDefault();
    try {
      await client.threads.rename(thread.id, title.trim());
      readThreads();
      onClose();
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <Dialog title={words.conversation} class="thread-menu" onClose={onClose}>
      <form onSubmit={rename}>
        <label>
          {words.title}
          <input
            value={title}
            maxLength={200}
            placeholder={visible(thread.id)}
            onInput={(event) => setTitle(event.currentTarget.value)}
          />
        </label>
        <div class="row">
          <button type="submit" class="primary">
            {words.rename}
          </button>
          <Action
            onClick={async () => {
              const named = await client.threads.suggestTitle(thread.id);
              setTitle(named.title ?? "");
              readThreads();
            }}
          >
            {words.suggest}
          </Action>
        </div>
        <Problem>{problem}</Problem>
      </form>
      <button
        type="button"
        class="danger"
        onClick={() => {
          deleteSoon({ thread: thread.id, title: thread.title || thread.id });
          onClose();
          if (isCurrent) go({ view: "new" });
        }}
      >
        {words.delete}
      </button>
      <p class="quietly">{words.deletes}</p>
    </Dialog>
  );
}
