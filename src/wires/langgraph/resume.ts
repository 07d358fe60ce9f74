// Reads answers to interrupts, in all the forms that clients send.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { decisionIn } from "../../protocol/approval-words.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import { callIdOf, type InterruptGroup, interruptGroups } from "./history.ts";

const Args = z.record(z.string(), z.unknown());
const Edited = z.looseObject({ args: Args, name: z.string().optional(), action: z.string().optional() });

/** A decision in the form of the current human-in-the-loop middleware, or in the older form. */
const SentDecision = z.looseObject({
  type: z.enum(["approve", "edit", "reject", "respond", "accept", "ignore", "response"]),
  message: z.string().nullish(),
  edited_action: Edited.optional(),
  editedAction: Edited.optional(),
  args: z.unknown().optional(),
});
type SentDecision = z.infer<typeof SentDecision>;
/** The maximum number of questions that can be open in a thread at once. */
const List = boundedList(SentDecision, 256);
const Decisions = z.looseObject({ decisions: List });
const Failure = z.strictObject({ error: z.unknown() });

const refused = (message: string) => new AppError("invalid_request", `command.resume: ${message}`);

/**
 * Returns the answers in `resume` to a thread's open interrupts, in any form that clients send. Interrupts without an
 * answer are asked again. Throws `interrupt_closed` if no interrupt is open, and `invalid_request` for an invalid
 * answer.
 */
export function answersOf(resume: unknown, open: readonly Interrupt[]): Answer[] {
  const groups = interruptGroups(open);
  const [first] = groups;
  if (!first) throw new AppError("interrupt_closed", "This thread has no open interrupt.");
  const byId = Args.safeParse(resume).data;
  const named = byId ? groups.filter(({ id }) => id in byId) : [];
  if (byId && named.length > 0) return named.flatMap((group) => answersTo(group, byId[group.id]));
  // A front end with one tool omits the interrupt's id.
  const calls = byId ? groups.filter((group) => group.kind === "tool" && callIn(group, byId)) : [];
  if (calls.length > 0) return calls.flatMap((group) => answersTo(group, resume));
  if (byId && Object.keys(byId).some((key) => /^[0-9a-f]{32}$/.test(key)))
    throw new AppError(
      "interrupt_closed",
      "This interrupt is closed: it was answered, or its run has ended.",
    );
  return answersTo(first, resume);
}

/** Returns the answers to one Interrupt of the wire. */
export function answersTo({ kind, asked }: InterruptGroup, value: unknown): Answer[] {
  if (kind === "tool") return asked.map((each) => resultOf(each, value));
  const decisions = decisionsIn(value);
  if (!decisions) return wordsOf(value, asked);
  // A list in the older form may be shorter, because Agent Inbox shows and answers only the first request.
  if (decisions.length > asked.length || (decisions.length < asked.length && !Array.isArray(value))) {
    const names = asked.map(({ name }) => name).join(", ");
    throw refused(
      `send one decision for each request (${names}), in this order and all at once. You sent ${decisions.length}.`,
    );
  }
  return decisions.flatMap((decision, index) => {
    const interrupt = asked[index];
    if (!interrupt) return [];
    const edited = editedIn(decision);
    const name = edited?.name ?? edited?.action ?? interrupt.name;
    if (name !== interrupt.name)
      throw refused(
        `decision ${index + 1} edits \`${name}\`, but request ${index + 1} is \`${interrupt.name}\`.`,
      );
    return [interrupt.kind === "question" ? answered(decision, interrupt) : decided(decision, interrupt)];
  });
}

const editedIn = ({ edited_action, editedAction, args }: SentDecision) =>
  edited_action ?? editedAction ?? Edited.safeParse(args).data;

const wordsIn = ({ message, args }: SentDecision) => message ?? (typeof args === "string" ? args : undefined);

/**
 * A question can also be answered through the form for its arguments, or with the reason for a rejection. Agent Inbox
 * sends responses this way, and some pages have no other field for text.
 */
function answered(decision: SentDecision, interrupt: Interrupt): Answer {
  const { id, options = [], one_of_options } = interrupt;
  const respond = (text: string): Answer => ({ id, decision: "respond", message: optionFor(text, options) });
  if (decision.type === "edit") {
    const answer = editedIn(decision)?.args.answer ?? "";
    if (answer === "") throw refused("write the answer to the question into `answer`, or reject it.");
    return respond(textOf(answer));
  }
  const words = wordsIn(decision)?.trim() ?? "";
  const isAnswer = words !== "" && (!one_of_options || options.includes(optionFor(words, options)));
  return decision.type === "reject" && isAnswer ? respond(words) : decided(decision, interrupt);
}

function decisionsIn(value: unknown): SentDecision[] | undefined {
  const one = SentDecision.safeParse(value).data;
  return (
    Decisions.safeParse(value).data?.decisions ?? List.safeParse(value).data ?? (one ? [one] : undefined)
  );
}

function decided(decision: SentDecision, { id, options = [] }: Interrupt): Answer {
  const { type, message, args } = decision;
  switch (type) {
    case "approve":
    case "accept":
      return { id, decision: "approve" };
    case "reject":
    case "ignore": {
      const reason = wordsIn(decision);
      return { id, decision: "deny", ...(reason ? { message: reason } : {}) };
    }
    case "respond":
    case "response":
      return { id, decision: "respond", message: optionFor(message ?? textOf(args), options) };
    case "edit": {
      const edited = editedIn(decision);
      if (!edited) throw refused("`edit` needs `edited_action`: {name, args}.");
      return { id, decision: "edit", args: withoutAliases(edited.args) };
    }
  }
}

/** Front ends see the arguments of a delegation under two names. Removes the added names. */
function withoutAliases(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { subagent_type, description, ...rest } = args;
  return "agent" in rest && subagent_type !== undefined ? rest : { ...args };
}

/** Reads a bare value, which approves, answers the questions, or denies with its text. */
function wordsOf(value: unknown, asked: readonly Interrupt[]): Answer[] {
  if (typeof value !== "string" && typeof value !== "boolean" && typeof value !== "number")
    throw refused("send {decisions: [{type: approve|edit|reject|respond}]}, or a text.");
  const text = String(value);
  const decision = decisionIn(value);
  const hasQuestion = asked.some(({ kind }) => kind === "question");
  return asked.flatMap(({ id, kind, options = [] }): Answer[] => {
    if (kind === "question") return [{ id, decision: "respond", message: optionFor(text, options) }];
    if (decision) return [{ id, decision }];
    // The text is meant for the question in the same group.
    return hasQuestion ? [] : [{ id, decision: "deny", message: text }];
  });
}

const optionFor = (text: string, options: readonly string[]) =>
  options.find((option) => option.toLowerCase() === text.trim().toLowerCase()) ?? text;

const callIn = ({ asked }: InterruptGroup, byCall: Readonly<Record<string, unknown>>) =>
  asked.some((each) => callIdOf(each) in byCall);

/** Reads the result of a front end's tool, given alone or under the id of its call. */
function resultOf(interrupt: Interrupt, value: unknown): Answer {
  const { id } = interrupt;
  const byCall = Args.safeParse(value).data;
  const callId = callIdOf(interrupt);
  const result = byCall && callId in byCall ? byCall[callId] : value;
  const failure = Failure.safeParse(result).data;
  if (failure) return { id, decision: "deny", message: textOf(failure.error) };
  return { id, decision: "respond", message: textOf(result) };
}

const textOf = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
