// Going on with an interrupted run: what is open on its thread, and which answers fit.

import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Answer, Interrupt, InterruptKind } from "../core/interrupt.ts";
import { openInterrupts } from "../core/interrupts.ts";
import { unanswered } from "../core/messages.ts";
import type { ThreadStore } from "../core/stores.ts";

/** What may be said to what. */
const DECISIONS: Record<InterruptKind, readonly Answer["decision"][]> = {
  approval: ["approve", "deny", "edit", "respond"],
  question: ["respond", "deny"],
  tool: ["respond", "deny"],
};

/** What a thread waits for, in the order in which it was asked. */
export async function openOn(threads: ThreadStore, owner: Owner, threadId: string): Promise<Interrupt[]> {
  const open = openInterrupts(new Map(Object.entries(await threads.state(owner, threadId))));
  if (open.length === 0) return open;
  // A run that failed has answered its calls, and says nothing of what was asked about them.
  const calls = unanswered(await threads.messages(owner, threadId)).map(({ id }) => id);
  return open.filter(({ call_id }) => calls.includes(call_id));
}

/** Throws `interrupt_closed` for one that is not open, `invalid_request` for an answer that does not fit. */
export function checkAnswers(answers: readonly Answer[], open: readonly Interrupt[]): void {
  if (new Set(answers.map(({ id }) => id)).size < answers.length)
    throw new AppError("invalid_request", "answers: each interrupt has one answer.");
  for (const answer of answers) {
    const interrupt = open.find(({ id }) => id === answer.id);
    if (!interrupt)
      throw new AppError(
        "interrupt_closed",
        `There is nothing open under \`${answer.id}\`: it was answered, or is over.`,
      );
    const fault = faultOf(answer, interrupt);
    if (fault) throw new AppError("invalid_request", `answers: \`${answer.id}\` ${fault}.`);
  }
}

function faultOf({ decision, args, remember, message }: Answer, interrupt: Interrupt): string | undefined {
  const { kind, one_of_options, options = [] } = interrupt;
  const fits = DECISIONS[kind];
  if (!fits.includes(decision)) return `takes ${fits.join(", ")}; not ${decision}`;
  if ((decision === "edit") !== (args !== undefined)) return "takes `args` with `edit`, and only with it";
  const canBeKept = kind === "approval" && (decision === "approve" || decision === "deny");
  if (remember !== undefined && !canBeKept)
    return "takes `remember` with the `approve` or `deny` of an approval only";
  if (decision === "respond" && one_of_options && !options.includes(message ?? ""))
    return `takes one of its options as \`message\`: ${options.map((option) => `\`${option}\``).join(", ")}`;
  return undefined;
}
