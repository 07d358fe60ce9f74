// What can be done with a thread from the list: a title that a person writes, one that a model suggests, deletion.

import { useState } from "preact/hooks";
import type { FoundThread } from "../../client/client.ts";
import { Action, Dialog, Problem, visible } from "../components.tsx";
import { go } from "../routes.ts";
import { client, messageOf } from "../session.ts";
import { readThreads } from "../threads.ts";

export interface ThreadMenuProps {
  readonly thread: FoundThread;
  /** Whether it is the one that is shown beside the list. */
  readonly isCurrent: boolean;
  readonly onClose: () => void;
}

export function ThreadMenu({ thread, isCurrent, onClose }: ThreadMenuProps) {
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
    <Dialog title="Conversation" class="thread-menu" onClose={onClose}>
      <form onSubmit={rename}>
        <label>
          Title
          <input
            value={title}
            maxLength={200}
            placeholder={visible(thread.id)}
            onInput={(event) => setTitle(event.currentTarget.value)}
          />
        </label>
        <div class="row">
          <button type="submit" class="primary">
            Rename
          </button>
          <Action
            onClick={async () => {
              const named = await client.threads.suggestTitle(thread.id);
              setTitle(named.title ?? "");
              readThreads();
            }}
          >
            Suggest a title
          </Action>
        </div>
        <Problem>{problem}</Problem>
      </form>
      <Delete
        onDelete={async () => {
          await client.threads.delete(thread.id);
          readThreads();
          onClose();
          if (isCurrent) go({ view: "new" });
        }}
      />
    </Dialog>
  );
}

function Delete({ onDelete }: { onDelete: () => Promise<void> }) {
  const [isAsking, setAsking] = useState(false);
  if (!isAsking)
    return (
      <button type="button" class="danger" onClick={() => setAsking(true)}>
        Delete…
      </button>
    );
  return (
    <div class="confirm">
      <p>Deletes its messages and runs, and the threads of its subagents. Nothing brings them back.</p>
      <div class="row">
        <Action class="danger" onClick={onDelete}>
          Delete for good
        </Action>
        <button type="button" onClick={() => setAsking(false)}>
          Keep it
        </button>
      </div>
    </div>
  );
}
