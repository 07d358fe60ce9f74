// What the effects of decisions and events make of a thread of the toy: the parts of it that change.

import { NO_USAGE } from "../../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../../src/agent/core/records.ts";
import type { EventWrite } from "../../../../src/engine/stores/event-writes.ts";
import type { MessageText } from "../../../../src/engine/stores/outcomes.ts";
import { headAfterEnd, type Write } from "../../../../src/engine/stores/thread-head.ts";
import { omitUndefined } from "../../../../src/lib/omit-undefined.ts";
import { merge } from "../../../../src/protocol/patch.ts";
import type { ThreadFile } from "./files.ts";

type Effect = Write | EventWrite;
type Of<E> = Extract<Effect, { write: E }>;
type Effects = {
  readonly [E in Effect["write"]]?: (file: ThreadFile, effect: Of<E>, at: string) => Partial<ThreadFile>;
};

function withRun({ runs }: ThreadFile, id: string, change: Partial<RunRecord>): ThreadFile["runs"] {
  return runs.map((run) => {
    if (run.record.id !== id) return run;
    const request = change.ended_at === undefined ? run.request : undefined;
    return { ...run, record: { ...run.record, ...change }, request };
  });
}
const withoutCall = ({ calls }: ThreadFile, id: string) => calls.filter(({ call_id }) => call_id !== id);

/** What is not named changes the head alone, or nothing. */
const EFFECTS: Effects = {
  create_thread({ thread, messages: staged }, { thread: news }, created_at) {
    const { messages = [], state = {}, ...about } = news;
    const first = [...staged, ...messages.map((each) => ({ id: each.id, text: JSON.stringify(each) }))];
    return {
      thread: { ...thread, ...about, created_at },
      messages: first.filter(({ id }, at) => first.findIndex((each) => each.id === id) === at),
      state: Object.entries(state),
    };
  },
  add_run({ runs, thread }, { run, title }, created_at) {
    const { request, idempotency_key: key, rewind_to: _, kept_to: __, ...news } = run;
    const record = { ...news, status: "pending", attempt: 1, usage: NO_USAGE, created_at } as const;
    const named = omitUndefined({ title: thread.title ?? title });
    return { runs: [...runs, { record, request, key }], thread: { ...thread, ...named, agent: run.agent } };
  },
  hold_run: (file, { run, attempt, begins }) => ({
    ...{ runs: withRun(file, run, { status: "running", attempt }), isHeld: true },
    begun: begins ? [...file.begun, run] : file.begun,
  }),
  release_run: () => ({ isHeld: false }),
  cancel_run: (file, { run, ending }, ended_at) => ({ runs: withRun(file, run, { ...ending, ended_at }) }),
  leave_message: ({ inbox }, { message }) => ({ inbox: [...inbox, message] }),
  rewind({ messages }, { message }) {
    const end = messages.findIndex(({ id }) => id === message);
    return { messages: messages.slice(0, end) };
  },
  describe_thread: ({ thread, state }, { title, metadata, forget = [] }) => ({
    thread: { ...thread, ...omitUndefined({ title, metadata }) },
    state: state.filter(([key]) => !forget.includes(key)),
  }),
  clear_thread: ({ thread }) => ({
    ...{ messages: [], state: [], calls: [], thread: { ...thread, status: "idle" } },
  }),
  put_call: (file, { call, due_at = Infinity }) => ({
    calls: [...withoutCall(file, call.call_id), call],
    callsAt: Math.min(due_at, file.callsAt ?? Infinity),
  }),
  drop_call: (file, { call_id }) => ({ calls: withoutCall(file, call_id) }),
  add_message: ({ messages, inbox }, { message }) => ({
    messages: messages.some(({ id }) => id === message.id) ? messages : [...messages, message],
    inbox: inbox.filter(({ id }) => id !== message.id),
  }),
  set_state: ({ state }, { key, value }) => ({ state: [...new Map(state).set(key, value)] }),
  delete_state: ({ state }, { key }) => ({ state: state.filter(([name]) => name !== key) }),
  patch_state: ({ state }, { key, patch }) => ({
    state: [...new Map(state).set(key, merge(new Map(state).get(key), patch))],
  }),
  end_run: (file, { outcome, thread }, ended_at) => ({
    runs: withRun(file, file.head.active?.run ?? "", { ...outcome, ended_at }),
    thread: { ...file.thread, status: thread },
    ...{ head: headAfterEnd(file.head), inbox: [], isHeld: false },
  }),
};

/** These are no news of the thread itself. */
const UNSEEN = /^(queue|hold|renew|release|excuse|stop)_run|_call$|^leave_message$/;

export function carriedOut(file: ThreadFile, effect: Effect, now: number): ThreadFile {
  const at = new Date(now).toISOString();
  // The table has under each name what takes an effect of that name.
  const carryOut = EFFECTS[effect.write] as Effects["set_state"] | undefined;
  const next = { ...file, ...carryOut?.(file, effect as Of<"set_state">, at) };
  return UNSEEN.test(effect.write) ? next : { ...next, thread: { ...next.thread, updated_at: at } };
}

/** Before its `create_thread`. `messages`: those that were staged for it. */
export const newFile = (messages: readonly MessageText[] = []): Omit<ThreadFile, "head"> => ({
  thread: { id: "", metadata: {}, status: "idle", message_count: 0, created_at: "", updated_at: "" },
  ...{ messages, state: [], runs: [], begun: [], inbox: [], isHeld: false, calls: [] },
});
