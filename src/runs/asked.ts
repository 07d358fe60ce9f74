// What a run has asked and still waits for. A question with an expiry is noted where results that come later are noted,
// so that any process goes on with the thread when its time is up.

import { tokenHash } from "../core/deferred-calls.ts";
import { hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Interrupt } from "../core/interrupt.ts";
import { openInterrupts } from "../core/interrupts.ts";
import type { RunInput } from "../core/run.ts";
import type { Stores } from "../core/stores.ts";
import { randomId } from "../lib/random-id.ts";

/** In place of a tool's name: no tool is called so, and none takes the note for its own. */
export const EXPIRY = "(expiry)";

export interface Asked {
  /**
   * To be called before one of these, of the run itself, is written: a question is noted before anybody sees it, and its note is gone before
   * its call may run. Throws what the store throws.
   */
  before(event: Extract<StreamEvent, { event: "on_interrupt" | "on_resume" }>): Promise<void>;
  /** The questions of this run that are open, as they were shown; none of a child's, which somebody else shows. */
  open(): Interrupt[];
}

export function followAsked(
  { deferredCalls }: Pick<Stores, "deferredCalls">,
  { owner, threadId: thread_id, id: run_id, lineage, state }: RunInput,
): Asked {
  // Somebody waits for the child and shows its questions as its own: that thread is gone on with.
  const isShownHere = lineage?.parent.background ?? true;
  const known = new Map(openInterrupts(state).map((each) => [each.id, each]));
  const shown = new Map<string, Interrupt>();

  /** A call may have several questions, of several subagents: the first expiry counts. */
  async function note(call_id: string): Promise<void> {
    if (!isShownHere) return;
    const [expires_at] = [...known.values()]
      .flatMap((each) => (each.call_id === call_id && each.expires_at ? [each.expires_at] : []))
      .sort();
    const key = { owner, thread_id, call_id };
    if (expires_at === undefined) return deferredCalls.forget(key);
    const token_hash = tokenHash(randomId());
    try {
      await deferredCalls.open({ ...key, run_id, tool: EXPIRY, token_hash, expires_at });
      await deferredCalls.accept(key);
    } catch (error) {
      // The others wake the thread as well; who goes on with it asks what is still open anew, and finds room for it.
      if (!hasCode(error, "limit_exceeded")) throw error;
    }
  }

  return {
    async before(event) {
      const { id } = event.data;
      const before = known.get(id);
      if (event.event === "on_interrupt") {
        known.set(id, event.data);
        shown.set(id, event.data);
      } else {
        known.delete(id);
        shown.delete(id);
      }
      const { call_id, expires_at } = known.get(id) ?? before ?? {};
      if (call_id !== undefined && expires_at !== undefined) await note(call_id);
    },
    open: () => (isShownHere ? [...shown.values()] : []),
  };
}
