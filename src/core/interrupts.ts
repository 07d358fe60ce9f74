// Asking somebody outside about a call. What is asked lies in the thread's state until its call has a result, so it
// outlasts the run, the process and the page that showed it.

import { z } from "zod";
import type { StreamEvent } from "./event.ts";
import { Answer, Interrupt, type InterruptKind } from "./interrupt.ts";
import type { ToolCall } from "./message.ts";
import { patchState, type Run } from "./run.ts";
import type { Stream } from "./stream.ts";

/** The slot of the thread's state that holds them, by id. */
const STATE_KEY = "interrupts";

const Kept = Interrupt.extend({ answer: Answer.optional() });
type Kept = z.infer<typeof Kept>;

export interface Question {
  readonly call: ToolCall;
  readonly kind: InterruptKind;
  readonly prompt: string;
  readonly options?: readonly string[];
}

/**
 * The answer to a question about a call, or nothing as long as there is none: the call is then to be left interrupted,
 * and asked for again when the thread is resumed. A call has one question of each kind, and it is answered once.
 */
export async function* askFor(
  { call, kind, prompt, options }: Question,
  run: Run,
): Stream<Answer | undefined> {
  const id = `${kind}_${call.id}`;
  const known = kept(run.state).get(id);
  if (known?.answer) return known.answer;
  const answer = known && run.answers.find((each) => each.id === id);
  if (answer) {
    yield { event: "on_resume", data: { id, decision: answer.decision } } satisfies StreamEvent;
    yield* patchState(run, STATE_KEY, { [id]: { ...known, answer } });
    return answer;
  }
  const asked: Interrupt = known ?? {
    ...{ id, kind, call_id: call.id, run_id: run.id, name: call.name, args: call.args, prompt },
    ...(options ? { options: [...options] } : {}),
    created_at: new Date().toISOString(),
  };
  yield { event: "on_interrupt", data: asked } satisfies StreamEvent;
  if (!known) yield* patchState(run, STATE_KEY, { [id]: asked });
  return undefined;
}

/** To be called once these calls have their results: nothing is asked about them any more. */
export async function* settleInterrupts(run: Run, callIds: readonly string[]): Stream<void> {
  const over = [...kept(run.state).values()].filter(({ call_id }) => callIds.includes(call_id));
  if (over.length > 0)
    yield* patchState(run, STATE_KEY, Object.fromEntries(over.map(({ id }) => [id, null])));
}

/** What a thread's state says is still to be answered, in the order in which it was asked. */
export function openInterrupts(state: ReadonlyMap<string, unknown>): Interrupt[] {
  return [...kept(state).values()].flatMap(({ answer, ...interrupt }) => (answer ? [] : [interrupt]));
}

function kept(state: ReadonlyMap<string, unknown>): Map<string, Kept> {
  const slot = z.record(z.string(), z.unknown()).safeParse(state.get(STATE_KEY)).data ?? {};
  return new Map(
    Object.entries(slot).flatMap(([id, value]) => {
      const known = Kept.safeParse(value).data;
      return known ? [[id, known] as const] : [];
    }),
  );
}
