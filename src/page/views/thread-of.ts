// What the messages of a conversation know of it.

import { createContext } from "preact";
import type { UserCell } from "../../client/cells.ts";
import type { Choice } from "../outbox.ts";

export interface MessageActions {
  readonly rewrite: (message: UserCell) => void;
  readonly retry: (message: UserCell) => Promise<void>;
  /** Answers the last message again, by what is chosen. */
  readonly again: (choice: Choice) => Promise<void>;
  /** Continues the last answer, which was cut off. */
  readonly resume: () => Promise<void>;
  readonly fork: (messageId: string) => Promise<void>;
}

export const ThreadOf = createContext<{
  readonly thread: string;
  /** Who answers. */
  readonly agent: string;
  /** Absent: who reads may only read. */
  readonly actions?: MessageActions | undefined;
}>({ thread: "", agent: "Assistant" });
