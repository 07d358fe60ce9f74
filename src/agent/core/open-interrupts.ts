// Manages the interrupts of a thread. The thread's state contains them until their calls have results, so they survive the
// end of the run and the process.

import { z } from "zod";
import type { StreamEvent } from "../../protocol/event.ts";
import {
  Answer,
  Interrupt,
  type InterruptKind,
  type InterruptPolicy,
  type RememberOption,
} from "../../protocol/interrupt.ts";
import type { ToolCall } from "./message.ts";
import { patched } from "./run.ts";
import type { Stream } from "./stream.ts";
import type { Run } from "./tool.ts";

/** Keeps interrupts open until someone answers them. */
export const OPEN_ENDED: InterruptPolicy = { onExpiry: "deny", unattended: false };

/** The key in the thread's state that contains the interrupts, by id. */
const STATE_KEY = "interrupts";

/** An interrupt, with its answer once it has one. */
const OpenInterrupt = Interrupt.extend({ answer: Answer.optional() });
type OpenInterrupt = z.infer<typeof OpenInterrupt>;
const Slot = z.record(z.string(), z.unknown());
const NONE: ReadonlyMap<string, OpenInterrupt> = new Map();

export interface Question {
  readonly call: ToolCall;
  readonly kind: InterruptKind;
  /** Distinguishes questions of the same kind about the same call. */
  readonly topic?: string;
  readonly prompt: string;
  /** Returns the URL to open and the prompt that goes with it. Called once, when the question is asked. */
  withAddress?(): Promise<{ readonly url: string; readonly prompt: string } | undefined>;
  readonly options?: readonly string[];
  /** The answer must be one of `options`. */
  readonly oneOfOptions?: boolean;
  readonly rememberOptions?: readonly RememberOption[];
}

/**
 * Returns the answer to a question about a call, or undefined if there is none yet. The caller then leaves
 * the call interrupted and asks again when the thread resumes. A call has at most one question of each kind and topic.
 * Each question is answered once, by the client that resumes the run, or by the run's policy if the run is
 * unattended or the question has expired.
 */
export async function* askFor(
  { call, kind, topic, prompt, withAddress, options, oneOfOptions, rememberOptions }: Question,
  run: Run,
): Stream<Answer | undefined> {
  const id = topic === undefined ? `${kind}_${call.id}` : `${kind}_${topic}_${call.id}`;
  const { unattended, expiresAfterMs } = run.interrupts;
  const known = kept(run.state).get(id);
  if (!known && unattended && kind !== "tool") return unattendedAnswer(id);
  const addressed = known ? undefined : await withAddress?.();
  const now = Date.now();
  const asked: OpenInterrupt = known ?? {
    id,
    kind,
    call_id: call.id,
    run_id: run.id,
    name: call.name,
    args: call.args,
    prompt,
    ...addressed,
    ...(options ? { options: [...options] } : {}),
    ...(oneOfOptions ? { one_of_options: true as const } : {}),
    ...(rememberOptions ? { remember_options: [...rememberOptions] } : {}),
    created_at: new Date(now).toISOString(),
    ...(expiresAfterMs === undefined ? {} : { expires_at: new Date(now + expiresAfterMs).toISOString() }),
  };
  return yield* answerTo(asked, run, () => expiry(asked, run.interrupts));
}

/**
 * The topic of a `connect` question that asks the user to open an address on another server. Skein is not
 * told when the user has finished there.
 */
export const VISIT = "visit";

/** Also true for the question of a subagent. */
export const isVisit = ({ id }: Pick<Interrupt, "id">): boolean => /^(?:[\w-]+:)*connect_visit_/.test(id);

export const isVisitAsked = ({ id }: ToolCall, run: Run): boolean =>
  kept(run.state).has(`connect_${VISIT}_${id}`);

/** The questions that calls of a run share, keyed by the run's state and the common prefix of the calls. */
const asked = new WeakMap<Run["state"], Map<string, { readonly call: string; answer?: Answer }>>();

/**
 * Like `askFor`, for a question that several calls of a turn share. The first call asks, and all calls receive its answer.
 * The names of the calls' tools begin with `prefix`.
 */
export async function* askTogether(question: Question, run: Run, prefix: string): Stream<Answer | undefined> {
  const { call, kind } = question;
  const ofRun = asked.get(run.state) ?? new Map<string, { readonly call: string; answer?: Answer }>();
  asked.set(run.state, ofRun);
  const first = ofRun.get(prefix) ?? { call: call.id };
  if (first.answer) return first.answer;
  const isOthers = ({ kind: its, name, call_id }: OpenInterrupt) =>
    its === kind && name.startsWith(prefix) && call_id !== call.id;
  const others = [...kept(run.state).values()].find(isOthers);
  if (others) return others.answer ?? broughtTo(others, run) ?? expiry(others, run.interrupts);
  if (first.call !== call.id) return undefined;
  ofRun.set(prefix, first);
  const answer = yield* askFor(question, run);
  // A refusal applies to the rest of the run. An approval does not, because the account's connection may end
  // again.
  if (answer?.decision === "deny") first.answer = answer;
  else if (answer) ofRun.delete(prefix);
  return answer;
}

/**
 * Shows a subagent's interrupts as the parent's own, and returns the answers so far, under the child's ids.
 * Removes interrupts that the child has closed. The child decides expired interrupts.
 */
export async function* forwardInterrupts(
  from: {
    readonly call: ToolCall;
    readonly agent: string;
    readonly name: string;
    readonly thread_id: string;
  },
  interrupts: readonly Interrupt[],
  run: Run,
): Stream<Answer[]> {
  const { call, agent, name, thread_id } = from;
  const idOf = ({ id }: Interrupt) => `${thread_id}:${id}`;
  // Call ids may repeat, and so may interrupt ids. The time of creation distinguishes a new question from an
  // answered one.
  const open = new Map(interrupts.map((each) => [idOf(each), each.created_at]));
  const isOpen = ({ id, created_at }: Interrupt) => open.get(id) === created_at;
  const known = [...kept(run.state).values()].filter(({ id }) => id.startsWith(`${thread_id}:`));
  const closed = known.filter((each) => !isOpen(each));
  for (const event of dropped(run, closed)) yield event;
  const passed = known.filter(isOpen);
  const answers: Answer[] = [];
  for (const interrupt of interrupts) {
    const asked = passed.find(({ id }) => id === idOf(interrupt)) ?? {
      ...interrupt,
      id: idOf(interrupt),
      call_id: call.id,
      run_id: run.id,
      asked_by: interrupt.asked_by ?? { agent, name, thread_id, id: interrupt.id },
    };
    const isAsked = !run.interrupts.unattended || asked.kind === "tool";
    const answer = isAsked ? yield* answerTo(asked, run) : unattendedAnswer(asked.id);
    if (answer) answers.push({ ...answer, id: interrupt.id });
  }
  return answers;
}

/**
 * Returns the answer from the state or, if it has none, from the run, or else the result of `otherwise`.
 * Without an answer, yields the interrupt as open.
 */
async function* answerTo(
  asked: OpenInterrupt,
  run: Run,
  otherwise: () => Answer | undefined = () => undefined,
): Stream<Answer | undefined> {
  const { id } = asked;
  if (asked.answer) return asked.answer;
  const isKnown = kept(run.state).has(id);
  const answer = isKnown ? (broughtTo(asked, run) ?? otherwise()) : undefined;
  if (answer) {
    const data = { id, name: asked.name, decision: answer.decision };
    yield { event: "on_resume", data } satisfies StreamEvent;
    yield patched(run, STATE_KEY, { [id]: { ...asked, answer } });
    return answer;
  }
  yield { event: "on_interrupt", data: asked } satisfies StreamEvent;
  if (!isKnown) yield patched(run, STATE_KEY, { [id]: asked });
  return undefined;
}

/**
 * Returns the answer that the run was started with. That answer does not apply to a question that this run
 * asked later under the same id.
 */
function broughtTo({ id, run_id }: OpenInterrupt, run: Run): Answer | undefined {
  return run_id === run.id ? undefined : run.answers.find((each) => each.id === id);
}

/** Sorts interrupts by the order of the given call ids, because parallel calls ask in any order. */
export const inCallOrder = <I extends Pick<Interrupt, "call_id">>(
  open: readonly I[],
  calls: readonly string[],
) => open.toSorted((a, b) => calls.indexOf(a.call_id) - calls.indexOf(b.call_id));

/** Returns the ids of the interrupts that an event of a run answers or withdraws. */
export function closedBy(event: StreamEvent): string[] {
  if (event.event !== "on_state" || event.data.key !== STATE_KEY) return [];
  const isClosed = (change: unknown) =>
    change === null || OpenInterrupt.safeParse(change).data?.answer !== undefined;
  return Object.entries(event.data.patch ?? {}).flatMap(([id, change]) => (isClosed(change) ? [id] : []));
}

/** Returns the answer to the call's approval question, or undefined if no answer exists. */
export function approvalOf(call: ToolCall, run: Run): Answer | undefined {
  const asked = kept(run.state).get(`approval_${call.id}`);
  return asked && (asked.answer ?? broughtTo(asked, run));
}

/**
 * If the approval answer is `edit`, returns the call with the edited arguments. Otherwise, returns the call
 * unchanged.
 */
export function asEdited(call: ToolCall, run: Run): ToolCall {
  const answer = approvalOf(call, run);
  return answer?.decision === "edit" ? { ...call, args: answer.args ?? {} } : call;
}

function unattendedAnswer(id: string): Answer {
  const message = "This call needs an answer, but no one is available. Continue without it.";
  return { id, decision: "deny", message };
}

/** Returns the policy's decision on an unattended or expired interrupt. */
function expiry(
  { id, kind, expires_at }: Interrupt,
  { onExpiry, unattended }: InterruptPolicy,
): Answer | undefined {
  if (unattended && kind !== "tool") return unattendedAnswer(id);
  if (expires_at === undefined || Date.parse(expires_at) > Date.now()) return undefined;
  if (kind === "approval" && onExpiry === "approve") return { id, decision: "approve" };
  return { id, decision: "deny", message: "No one answered in time. Continue without it." };
}

/** Closes the interrupts of these calls, which now have results. Returns the events to yield next. */
export function settledInterrupts(run: Run, callIds: readonly string[]): StreamEvent[] {
  return dropped(
    run,
    [...kept(run.state).values()].filter(({ call_id }) => callIds.includes(call_id)),
  );
}

/**
 * Closes all interrupts, because a new message ends the waiting of every call. Returns the events to yield
 * next.
 */
export function clearedInterrupts(run: Run): StreamEvent[] {
  return dropped(run, [...kept(run.state).values()]);
}

function dropped(run: Run, over: readonly Interrupt[]): StreamEvent[] {
  if (over.length === 0) return [];
  return [patched(run, STATE_KEY, Object.fromEntries(over.map(({ id }) => [id, null])))];
}

/**
 * Returns the ids of interrupts that the run answers although they are no longer open, because another client
 * answered first.
 */
export function staleAnswers({ answers, state, attempt }: Run): string[] {
  // An earlier attempt has already used the answers.
  if (attempt > 1 || answers.length === 0) return [];
  const open = new Set(openInterrupts(state).map(({ id }) => id));
  return answers.flatMap(({ id }) => (open.has(id) ? [] : [id]));
}

/** Returns a thread's open interrupts, oldest first. */
export function openInterrupts(state: ReadonlyMap<string, unknown>): Interrupt[] {
  return [...kept(state).values()].flatMap(({ answer, ...interrupt }) => (answer ? [] : [interrupt]));
}

function kept(state: ReadonlyMap<string, unknown>): ReadonlyMap<string, OpenInterrupt> {
  const slot = state.get(STATE_KEY);
  // This is the most common case, and the check runs for every call.
  if (slot === undefined) return NONE;
  return new Map(
    Object.entries(Slot.safeParse(slot).data ?? {}).flatMap(([id, value]) => {
      const known = OpenInterrupt.safeParse(value).data;
      return known ? [[id, known] as const] : [];
    }),
  );
}
