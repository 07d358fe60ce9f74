// Checks that answers match their interrupts.

import { AppError } from "../../agent/core/errors.ts";
import type { Answer, Interrupt, InterruptKind } from "../../protocol/interrupt.ts";

/** The decisions that each kind of interrupt accepts. */
const DECISIONS: Record<InterruptKind, readonly Answer["decision"][]> = {
  approval: ["approve", "deny", "edit", "respond"],
  question: ["respond", "deny"],
  tool: ["respond", "deny"],
  connect: ["approve", "deny"],
};

/**
 * Throws `interrupt_closed` if an interrupt is not open, and `invalid_request` if the answer does not match its kind.
 */
export function checkAnswers(answers: readonly Answer[], open: readonly Interrupt[]): void {
  if (new Set(answers.map(({ id }) => id)).size < answers.length)
    throw new AppError("invalid_request", "answers: send only one answer for each interrupt.");
  for (const answer of answers) {
    const interrupt = open.find(({ id }) => id === answer.id);
    if (!interrupt)
      throw new AppError(
        "interrupt_closed",
        `Interrupt \`${answer.id}\` is closed: it was already answered or its run has ended.`,
      );
    const fault = faultOf(answer, interrupt);
    if (fault) throw new AppError("invalid_request", `answers: \`${answer.id}\` ${fault}.`);
  }
}

function faultOf(answer: Answer, interrupt: Interrupt): string | undefined {
  const { decision, args, remember, message } = answer;
  const { kind, one_of_options, options = [] } = interrupt;
  const fits = DECISIONS[kind];
  if (!fits.includes(decision)) return `accepts ${fits.join(", ")}; not ${decision}`;
  if ((decision === "edit") !== (args !== undefined))
    return "requires `args` with `edit`, and accepts them with no other decision";
  const canBeKept = kind === "approval" && (decision === "approve" || decision === "deny");
  if (remember !== undefined && !canBeKept)
    return "accepts `remember` only when you approve or deny an approval";
  const width = faultOfWidth(answer, interrupt);
  if (width) return width;
  if (decision === "respond" && one_of_options && !options.includes(message ?? ""))
    return `accepts one of its options as \`message\`: ${options.map((option) => `\`${option}\``).join(", ")}`;
  return undefined;
}

function faultOfWidth(
  { remember, remember_as }: Answer,
  { remember_options = [{ remember_as: "call" }] }: Interrupt,
): string | undefined {
  if (remember_as === undefined) return undefined;
  if (remember === undefined) return "accepts `remember_as` only together with `remember`";
  if (remember_options.some((each) => each.remember_as === remember_as)) return undefined;
  if (remember_options.length === 0) return "cannot be remembered: it counts for this call only";
  const names = remember_options.map((each) => `\`${each.remember_as}\``).join(" or ");
  return `cannot be remembered as \`${remember_as}\`: its \`remember_as\` may be ${names}`;
}
