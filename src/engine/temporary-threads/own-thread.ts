// Creates the thread for a run that does not name one.

import { AppError, type ErrorCode } from "../../agent/core/errors.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { TemporaryThreads } from "./index.ts";
import { keyedThreadId } from "./rules.ts";

export interface OwnThread {
  readonly thread_id: string;
  /** Calls `accept` for the thread's run. Throws the errors of `accept` and `TemporaryThreads.announce`. */
  begin<T>(accept: () => Promise<T>): Promise<T>;
  /** Must be called after the client has read the whole answer. Never throws. */
  wasRead(): Promise<void>;
}

export interface OwnThreadOptions {
  /** The idempotency key of the request. The same key leads to the same thread, and therefore to the same run. */
  readonly key: string | undefined;
  /** If false, the thread is deleted after its run. */
  readonly isKept: boolean;
}

export function ownThread(
  temporaryThreads: Pick<TemporaryThreads, "announce" | "withdraw" | "wasRead">,
  owner: Owner,
  { key, isKept }: OwnThreadOptions,
): OwnThread {
  const thread_id = key === undefined ? newThreadId() : keyedThreadId(key, isKept);
  if (isKept) return { thread_id, begin: (accept) => accept(), async wasRead() {} };
  return {
    thread_id,
    async begin(accept) {
      await temporaryThreads.announce(owner, thread_id, key !== undefined);
      try {
        return await accept();
      } catch (error) {
        // Keeps the thread if another request with the same key may still be accepted, or if the run may have been
        // accepted before a server failure.
        if (key === undefined && isRefusal(error)) await temporaryThreads.withdraw(owner, thread_id);
        throw error;
      }
    },
    wasRead: () => temporaryThreads.wasRead(owner, thread_id),
  };
}

const FAILURES: ReadonlySet<ErrorCode> = new Set(["unavailable", "internal", "shutting_down", "lease_lost"]);
const isRefusal = (error: unknown) => error instanceof AppError && !FAILURES.has(error.code);
