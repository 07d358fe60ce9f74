// The context that a command of a chat gets, and the changes that it returns.

import type { Thread } from "../../../client/client.ts";
import type { Paint } from "../paint.ts";
import type { Connected } from "./turn.ts";

export interface Context extends Connected {
  /** The threads that were listed last; their numbers. */
  readonly listed: readonly Thread[];
  readonly paint: Paint;
  /** Shows a text that is painted. */
  readonly write: (text: string) => void;
  /** Aborts when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Change {
  readonly leave?: true;
  /** The thread to open. */
  readonly thread?: string;
  /** What each run is started with from now on. */
  readonly run?: Connected["run"];
  readonly listed?: readonly Thread[];
}

export interface Command {
  readonly takes: string;
  /** Throws what the server refuses. */
  readonly run: (argument: string, context: Context) => Change | Promise<Change>;
}
