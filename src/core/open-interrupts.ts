// Asking somebody outside about a call. What is asked lies in the thread's state until its call has a result, so it
// outlasts the run, the process and the page that showed it.

import { z } from "zod";
import type { StreamEvent } from "./event.ts";
import { Answer, Interrupt, type InterruptKind, type InterruptPolicy } from "./interrupt.ts";
import type { ToolCall } from "./message.ts";
import { patchState } from "./run.ts";
import type { Stream } from "./stream.ts";
import type { Run } from "./tool.ts";

/** What is asked stays open until it is answered. */
export const OPEN_ENDED: InterruptPolicy = { onExpiry: "deny", unattended: false };

/** The slot of the thread's state that holds them, by id. */
const STATE_KEY = "interrupts";

const Kept = Interrupt.extend({ answer: Answer.optional() });
type Kept = z.infer<typeof Kept>;
const Slot = z.record(z.string(), z.unknown());
const NONE: ReadonlyMap<string, Kept> = new Map();

export interface Question {
  readonly call: ToolCall;
  readonly kind: InterruptKind;
  readonly prompt: string;
  readonly options?: readonly string[];
  /** Nothing but one of `options` is an answer. */
  readonly oneOfOptions?: boolean;
}

/**
 * The answer to a question about a call, or nothing as long as there is none: the call is then to be left interrupted,
 * and asked for again when the thread is resumed. A call has one question of each kind, and it is answered once: by
 * whoever resumes the run, or by the run's policy when nobody is there or its time is up.
 */
export async function* askFor(
  { call, kind, prompt, options, oneOfOptions }: Question,
  run: Run,
): Stream<Answer | undefined> {
  const id = `${kind}_${call.id}`;
  const { unattended, expiresAfterMs } = run.interrupts;
  const known = kept(run.state).get(id);
  if (!known && unattended && kind !== "tool") return unattendedAnswer(id);
  const now = Date.now();
  const asked: Kept = known ?? {
    ...{ id, kind, call_id: call.id, run_id: run.id, name: call.name, args: call.args, prompt },
    ...(options ? { options: [...options] } : {}),
    ...(oneOfOptions ? { one_of_options: true as const } : {}),
    created_at: new Date(now).toISOString(),
    ...(expiresAfterMs === undefined ? {} : { expires_at: new Date(now + expiresAfterMs).toISOString() }),
  };
  return yield* answerTo(asked, run, () => expiry(asked, run.interrupts));
}

/**
 * Shows what a subagent's thread waits for as the parent's own, and returns the answers that are there, with the child's
 * ids. What the child no longer waits for is forgotten here. One whose time is up is the child's to decide.
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
  // The id of a call may come again, and with it the question's: an answer counts for the one that was asked.
  const open = new Map(interrupts.map((each) => [idOf(each), each.created_at]));
  const isOpen = ({ id, created_at }: Interrupt) => open.get(id) === created_at;
  const known = [...kept(run.state).values()].filter(({ id }) => id.startsWith(`${thread_id}:`));
  yield* drop(
    run,
    known.filter((each) => !isOpen(each)),
  );
  const passed = known.filter(isOpen);
  const answers: Answer[] = [];
  for (const interrupt of interrupts) {
    const asked = passed.find(({ id }) => id === idOf(interrupt)) ?? {
      ...interrupt,
      ...{ id: idOf(interrupt), call_id: call.id, run_id: run.id },
      asked_by: interrupt.asked_by ?? { agent, name, thread_id, id: interrupt.id },
    };
    const isAsked = !run.interrupts.unattended || asked.kind === "tool";
    const answer = isAsked ? yield* answerTo(asked, run) : unattendedAnswer(asked.id);
    if (answer) answers.push({ ...answer, id: interrupt.id });
  }
  return answers;
}

/** The answer that is kept or comes with the run, else what `otherwise` decides; else it is shown as open. */
async function* answerTo(
  asked: Kept,
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
    yield* patchState(run, STATE_KEY, { [id]: { ...asked, answer } });
    return answer;
  }
  yield { event: "on_interrupt", data: asked } satisfies StreamEvent;
  if (!isKnown) yield* patchState(run, STATE_KEY, { [id]: asked });
  return undefined;
}

/** The answer that the run was started with. What this run itself has asked came after it, though under the same id. */
function broughtTo({ id, run_id }: Kept, run: Run): Answer | undefined {
  return run_id === run.id ? undefined : run.answers.find((each) => each.id === id);
}

/** The answer that there is to whether a call may run. */
export function approvalOf(call: ToolCall, run: Run): Answer | undefined {
  const asked = kept(run.state).get(`approval_${call.id}`);
  return asked && (asked.answer ?? broughtTo(asked, run));
}

/** The call as it is to be run: with the arguments that whoever was asked has given it. */
export function asEdited(call: ToolCall, run: Run): ToolCall {
  const answer = approvalOf(call, run);
  return answer?.decision === "edit" ? { ...call, args: answer.args ?? {} } : call;
}

function unattendedAnswer(id: string): Answer {
  const message = "This needs somebody's answer, and nobody is there to be asked. Go on without it.";
  return { id, decision: "deny", message };
}

/** What is decided without an answer, once there is no more time for one. */
function expiry(
  { id, kind, expires_at }: Interrupt,
  { onExpiry, unattended }: InterruptPolicy,
): Answer | undefined {
  if (unattended && kind !== "tool") return unattendedAnswer(id);
  if (expires_at === undefined || Date.parse(expires_at) > Date.now()) return undefined;
  if (kind === "approval" && onExpiry === "approve") return { id, decision: "approve" };
  return { id, decision: "deny", message: "Nobody answered in time. Go on without it." };
}

/** To be called once these calls have their results: nothing is asked about them any more. */
export async function* settleInterrupts(run: Run, callIds: readonly string[]): Stream<void> {
  yield* drop(
    run,
    [...kept(run.state).values()].filter(({ call_id }) => callIds.includes(call_id)),
  );
}

/** To be called when a new message begins: no call waits any more, and what was asked of calls that are gone is over too. */
export async function* clearInterrupts(run: Run): Stream<void> {
  yield* drop(run, [...kept(run.state).values()]);
}

async function* drop(run: Run, over: readonly Interrupt[]): Stream<void> {
  if (over.length > 0)
    yield* patchState(run, STATE_KEY, Object.fromEntries(over.map(({ id }) => [id, null])));
}

/** The answers with which a run was started that are to nothing that is open, as somebody else was faster. */
export function staleAnswers({ answers, state, attempt }: Run): string[] {
  // An earlier attempt has taken them.
  if (attempt > 1 || answers.length === 0) return [];
  const open = new Set(openInterrupts(state).map(({ id }) => id));
  return answers.flatMap(({ id }) => (open.has(id) ? [] : [id]));
}

/** What a thread's state says is still to be answered, in the order in which it was asked. */
export function openInterrupts(state: ReadonlyMap<string, unknown>): Interrupt[] {
  return [...kept(state).values()].flatMap(({ answer, ...interrupt }) => (answer ? [] : [interrupt]));
}

function kept(state: ReadonlyMap<string, unknown>): ReadonlyMap<string, Kept> {
  const slot = state.get(STATE_KEY);
  // Almost always, and looked at for every call.
  if (slot === undefined) return NONE;
  return new Map(
    Object.entries(Slot.safeParse(slot).data ?? {}).flatMap(([id, value]) => {
      const known = Kept.safeParse(value).data;
      return known ? [[id, known] as const] : [];
    }),
  );
}
