// The context that a command of a chat gets, and the changes that it returns.

import type { Thread } from "../../../client/client.ts";
import type { Paint } from "../paint.ts";
import type { ConnectedThread } from "./turn.ts";

export interface ChatCommandContext extends ConnectedThread {
  /** The most recently listed threads. The user can enter their positions as numbers. */
  readonly listed: readonly Thread[];
  readonly paint: Paint;
  /** Writes text that already contains styles. */
  readonly write: (text: string) => void;
  /** Aborts when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface ChatChange {
  readonly leave?: true;
  /** The thread to open. */
  readonly thread?: string;
  /** The options of all runs that follow. */
  readonly run?: ConnectedThread["run"];
  readonly listed?: readonly Thread[];
}

export interface ChatCommand {
  readonly takes: string;
  /** Throws the server's error. */
  readonly run: (argument: string, context: ChatCommandContext) => ChatChange | Promise<ChatChange>;
}
