// The context of the messages in a conversation: its thread and the available actions.

import { createContext } from "preact";
import type { UserCell } from "../../client/cells.ts";
import type { RunChoice } from "../outbox.ts";

export interface MessageActions {
  readonly rewrite: (message: UserCell) => void;
  readonly retry: (message: UserCell) => Promise<void>;
  /** Answers the last user message again, with these choices. */
  readonly again: (choice: RunChoice) => Promise<void>;
  /** Continues the last answer, which was cut off. */
  readonly resume: () => Promise<void>;
  readonly fork: (messageId: string) => Promise<void>;
}

export const ThreadOf = createContext<{
  readonly thread: string;
  /** The agent that answers. */
  readonly agent: string;
  /** Undefined for a user with read-only access. */
  readonly actions?: MessageActions | undefined;
}>({ thread: "", agent: "Assistant" });
