// What an input begins: a run for the user's newest message, or one that continues with the answers.

import { AppError } from "../../../core/errors.ts";
import { type Message, textOf } from "../../../core/message.ts";
import type { Origin, RunRecord } from "../../../core/records.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../../protocol/interrupt.ts";
import { newestRun } from "../../../runs/control.ts";
import { openOn, resumeRun, startRun } from "../../../runs/start.ts";
import type { RouteServices } from "../../services.ts";
import { type Alignment, align, keyOfMessage, messageOf } from "../messages.ts";
import { answersInWords } from "../words.ts";
import { activeRun, type Before, beforeRun } from "./frames.ts";
import { answersIn, clientTools, contentOf, openingOf, type RunAgentInput } from "./input.ts";
import { asksInWords } from "./older-clients.ts";

/** Who sends an input, to which agent on which thread. */
export interface Sender {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly agent: string;
  /** The id of the API key. */
  readonly api_key?: string | undefined;
  readonly origin?: Origin | undefined;
  readonly idempotency_key?: string | undefined;
}

export interface Begun {
  /** Starts the run, or finds it. Gets the id of the stream's place. */
  readonly start: (stream: string) => Promise<RunRecord>;
  readonly before: Before;
}

/**
 * Checks the input and starts nothing yet. Throws `invalid_request` when there is nothing new in it, and
 * `interrupt_closed` when its answers are to no open question.
 */
export async function beginning(
  services: RouteServices,
  sender: Sender,
  body: RunAgentInput,
  version?: number | undefined,
): Promise<Begun> {
  if (isAnswer(body)) return resuming(services, sender, body, (open) => answersIn(body, open));
  const words = asksInWords(version) ? await newWords(services, sender, body) : "";
  const open = words === "" ? [] : await openOn(services.stores.threads, sender.owner, sender.thread_id);
  if (answersInWords(words, open).length === 0) return running(services, sender, body);
  return resuming(services, sender, body, (asked) => answersInWords(words, asked));
}

/** What the user's newest message says, unless the thread has it already. */
async function newWords(
  { stores }: RouteServices,
  { owner, thread_id }: Sender,
  { messages }: RunAgentInput,
): Promise<string> {
  const newest = messages.findLast(({ role }) => role === "user");
  if (!newest || (newest.id && (await stores.threads.message(owner, thread_id, newest.id)))) return "";
  return textOf(contentOf(newest));
}

/** Whether the newest thing in the input is an answer, and no message of the user. */
function isAnswer({ resume, messages }: RunAgentInput): boolean {
  if (resume && resume.length > 0) return true;
  return messages.findLast(({ role }) => role === "user" || role === "tool")?.role === "tool";
}

/** The user's newest message begins a run, takes the place of an earlier one, or is a repeat. */
async function running(
  services: RouteServices,
  { owner, thread_id, agent, api_key, origin, idempotency_key }: Sender,
  body: RunAgentInput,
): Promise<Begun> {
  const { stores, runs } = services;
  const [known, state, active] = await Promise.all([
    stores.threads.messages(owner, thread_id),
    stores.threads.state(owner, thread_id),
    activeRun(stores, owner, thread_id),
  ]);
  const { message, place } = newestOf(body, known, active !== undefined);
  if (place.as === "repeat" && active)
    return { start: async () => active, before: await beforeRun(stores, owner, active) };
  const opening = known.length === 0 ? openingOf(body) : [];
  if (services.refusesSystemMessages && opening.length > 0)
    throw new AppError(
      "invalid_request",
      "messages, context: this server accepts no `system` messages from users. Use `user`.",
    );
  const rewind_to = place.as === "replacement" ? place.of : undefined;
  const command = {
    thread_id,
    agent,
    metadata: {},
    on_busy: "reject" as const,
    request: {
      input: [...opening, message],
      settings: {},
      ...omitUndefined({ tools: clientTools(body), api_key, origin }),
    },
    ...omitUndefined({ rewind_to }),
    idempotency_key: idempotency_key ?? keyOfMessage(message, known),
  };
  const messages =
    rewind_to === undefined
      ? known
      : known.slice(
          0,
          known.findIndex(({ id }) => id === rewind_to),
        );
  return {
    start: (stream) => startRun(runs, owner, { ...command, stream }),
    before: { messages, state, showsMessages: false },
  };
}

async function resuming(
  { stores, runs }: RouteServices,
  { owner, thread_id, api_key, origin, idempotency_key }: Sender,
  body: RunAgentInput,
  answersTo: (open: readonly Interrupt[]) => Answer[],
): Promise<Begun> {
  const [messages, state, open] = await Promise.all([
    stores.threads.messages(owner, thread_id),
    stores.threads.state(owner, thread_id),
    openOn(stores.threads, owner, thread_id),
  ]);
  const answers = answersTo(open);
  const run_id = open.find(({ id }) => id === answers[0]?.id)?.run_id;
  if (run_id === undefined)
    throw new AppError("interrupt_closed", "Nothing in this input answers an open question of the thread.");
  const newest = await newestRun(stores.runs, owner, thread_id);
  const command = {
    thread_id,
    run_id: newest?.id ?? run_id,
    answers,
    ...omitUndefined({ tools: clientTools(body), api_key, origin, idempotency_key }),
  };
  // The client's own record of a result gives way to the thread's.
  const showsMessages = body.messages.some(
    ({ role, toolCallId }) => role === "tool" && open.some(({ call_id }) => call_id === toolCallId),
  );
  return {
    start: (stream) => resumeRun(runs, owner, { ...command, stream }),
    before: { messages, state, showsMessages },
  };
}

/** The user's newest message, and what it is to the thread. Throws `invalid_request` when there is nothing new. */
function newestOf({ messages: sent }: RunAgentInput, known: readonly Message[], isBusy: boolean) {
  const at = sent.findLastIndex(({ role }) => role === "user");
  const newest = sent[at];
  if (!newest) throw new AppError("invalid_request", "messages: there is no message with the role `user`.");
  const message = messageOf({ id: newest.id ?? undefined, content: contentOf(newest) });
  const before = sent.slice(0, at).filter(({ role }) => role === "user");
  const held = [...before.map(({ id }) => ({ id: id ?? undefined, content: "" })), message];
  const place: Alignment = align(known, held, { isWhole: true, isRegenerated: !isBusy });
  const isAnswered = sent.slice(at + 1).some(({ role }) => role === "assistant");
  if (place.as === "replacement" && place.of === message.id && isAnswered)
    throw new AppError(
      "invalid_request",
      "messages: there is nothing new. Add a message; or leave out the last answer, to get another one.",
    );
  return { message, place };
}
