// The context that a command of a chat gets, and the changes that it returns.

import type { Thread } from "../../../client/client.ts";
import type { Paint } from "../paint.ts";
import type { Connected } from "./turn.ts";

export interface Context extends Connected {
  /** The most recently listed threads. The user can enter their positions as numbers. */
  readonly listed: readonly Thread[];
  readonly paint: Paint;
  /** Writes text that already contains styles. */
  readonly write: (text: string) => void;
  /** Aborts when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Change {
  readonly leave?: true;
  /** The thread to open. */
  readonly thread?: string;
  /** The options of all runs that follow. */
  readonly run?: Connected["run"];
  readonly listed?: readonly Thread[];
}

export interface Command {
  readonly takes: string;
  /** Throws the server's error. */
  readonly run: (argument: string, context: Context) => Change | Promise<Change>;
}
