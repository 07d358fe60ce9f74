// Any commands of users, of processes that execute runs and of a clock, and any batches of events: every store answers as
// memory does, and keeps the same threads, logs and calls. Decisions are tested on memory alone; this holds the others to them.

import fc from "fast-check";
import { expect, test } from "vitest";
import { tokenHash } from "../../src/agent/core/deferred-calls.ts";
import { AppError } from "../../src/agent/core/errors.ts";
import { userMessage } from "../../src/agent/core/message.ts";
import type { Thread } from "../../src/agent/core/records.ts";
import type { Claim, Lease } from "../../src/agent/core/stores.ts";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import {
  ADA,
  delta,
  done,
  failure,
  newRun,
  note,
  type Open,
  patch,
  readAll,
  said,
  state,
} from "../engine/stores/fixture.ts";
import { isNightly } from "../support/seed.ts";

const LIMITS = { leaseMs: 1000, maxAttempts: 3, queueLength: 2, inboxLength: 2 };

const THREADS = ["a", "b", "c"];
const thread = fc.constantFrom(...THREADS);
/** The same names on every thread, few enough to meet. */
const nth = fc.nat(5);
const key = fc.constantFrom("todos", "files", "__proto__");
const value = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant(null));
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });

const Event = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("say" as const), nth }) },
  fc.record({ kind: fc.constant("delta" as const), text }),
  fc.record({ kind: fc.constant("set" as const), key, value: optional(value) }),
  fc.record({
    kind: fc.constant("patch" as const),
    key,
    patch: fc.dictionary(fc.constantFrom("a", "b", "constructor"), value, { maxKeys: 3 }),
  }),
  fc.constant({ kind: "below" } as const),
);
const End = fc.constantFrom("success", "interrupted", "cancelled", "error", "failure");

const Step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constantFrom("start" as const, "enqueue" as const),
      thread,
      nth,
      key: optional(fc.constantFrom("k", "l")),
      whenBusy: fc.constantFrom("reject" as const, "queue" as const, "front" as const),
      rewind: fc.option(nth, { nil: undefined, freq: 3 }),
      keeps: fc.boolean(),
      resumes: fc.constantFrom(undefined, "run_before"),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant("append" as const),
      lease: fc.nat(2),
      events: fc.array(Event, { minLength: 1, maxLength: 4 }),
      end: fc.option(End, { nil: undefined, freq: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constantFrom("renew", "inbox", "release", "excuse", "acquit").map((each) => each as "renew"),
      lease: fc.nat(2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("next" as const), thread }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("look" as const) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("steer" as const), thread, nth, run: nth }) },
  fc.record({
    what: fc.constant("stop" as const),
    thread,
    run: nth,
    mode: fc.constantFrom("cancel" as const, "interrupt" as const),
  }),
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("create" as const),
      thread,
      messages: fc.array(nth, { maxLength: 3 }),
      parent: optional(thread),
      title: optional(text),
    }),
  },
  fc.record({
    what: fc.constant("update" as const),
    thread,
    title: optional(text),
    forget: optional(fc.array(key, { maxLength: 2 })),
  }),
  fc.record({ what: fc.constantFrom("delete" as const, "clear" as const), thread }),
  fc.record({ what: fc.constant("fork" as const), thread, to: thread, until: optional(nth) }),
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc
        .constantFrom("open", "accept", "leave", "close", "deliver", "forget")
        .map((each) => each as "open"),
      thread,
      call: fc.nat(2),
    }),
  },
  fc.record({ what: fc.constantFrom("due" as const, "die" as const) }),
  fc.record({
    what: fc.constant("put" as const),
    thread,
    key: fc.constantFrom("k", "l"),
    version: optional(fc.nat(2)),
  }),
  fc.record({
    what: fc.constant("list" as const),
    limit: fc.integer({ min: 1, max: 3 }),
    q: optional(fc.constantFrom("a", "E")),
    status: optional(fc.constantFrom("idle" as const, "busy" as const, "interrupted" as const)),
    parent: optional(thread),
    children: fc.constantFrom(true as const, undefined),
  }),
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant("wait" as const), ms: fc.constantFrom(10, 300, 1001) }),
  },
);
type Step = typeof Step extends fc.Arbitrary<infer S> ? S : never;

/** Runs that wait for another one of their thread, of which the last to arrive starts first: few drawn lists contain that. */
const QUEUED = ((): Step[] => {
  const run = { thread: "a", key: undefined, rewind: undefined, keeps: false, resumes: undefined };
  const end: Step[] = [
    { what: "append", lease: 0, events: [{ kind: "say", nth: 5 }], end: "success" },
    { what: "next", thread: "a" },
  ];
  return [
    { what: "start", nth: 0, whenBusy: "queue", ...run },
    { what: "enqueue", nth: 1, whenBusy: "queue", ...run },
    { what: "enqueue", nth: 2, whenBusy: "front", ...run },
    ...[...end, ...end, ...end],
  ];
})();

const MESSAGES = Array.from({ length: 6 }, (_, n) => userMessage(`message ${n}`));
const messageAt = (n: number) => MESSAGES[n] ?? userMessage("none");

function eventOf(each: typeof Event extends fc.Arbitrary<infer T> ? T : never): StreamEvent {
  if (each.kind === "say") return said(messageAt(each.nth));
  if (each.kind === "delta") return delta(each.text);
  if (each.kind === "set") return state(each.key, each.value);
  if (each.kind === "patch") return patch(each.key, each.patch);
  return { ...state("todos", "of a subagent"), path: ["call_1"] };
}

const call = (thread_id: string, n: number) => ({
  ...{ owner: ADA, thread_id, call_id: `call_${n}`, run_id: "run_0", tool: "weather" },
  ...{ token_hash: tokenHash(`${thread_id} ${n}`), expires_at: "2026-11-21T10:00:03.000Z" },
});

/** A lease is its process's own. */
interface Held {
  readonly lease: Lease;
  readonly by: AllStores;
}

const NO_LEASE = { owner: ADA, thread_id: "a", run_id: "none", epoch: 1 };

/** Answers each step; a refusal is its code. */
function player(stores: AllStores, leases: Held[]) {
  const { threads, runs, deferredCalls, items } = stores;
  const claimed = <C extends { readonly lease: Lease }>(claim: C): C => {
    leases.push({ lease: claim.lease, by: stores });
    return claim;
  };
  const heldAt = (n: number): Held => leases.at(-1 - n) ?? { lease: NO_LEASE, by: stores };

  async function answer(step: Step): Promise<unknown> {
    switch (step.what) {
      case "start":
      case "enqueue": {
        const { rewind, keeps } = step;
        const run = newRun(step.thread, {
          id: `run_${step.thread}${step.nth}`,
          request: { settings: {}, input: [messageAt(step.nth)] },
          ...omitUndefined({ idempotency_key: step.key, resumes: step.resumes }),
          ...(rewind === undefined ? {} : { rewind_to: messageAt(rewind).id }),
          ...(keeps && rewind !== undefined ? { kept_to: messageAt(rewind).id } : {}),
        });
        const begun = await runs[step.what](ADA, run, step.whenBusy);
        return begun.outcome === "claimed" ? claimed(begun.claim) : begun;
      }
      case "append": {
        const end = step.end && (step.end === "failure" ? failure("It broke.") : done(step.end));
        const { lease, by } = heldAt(step.lease);
        return by.events.append(lease, [...step.events.map(eventOf), note("x"), ...(end ? [end] : [])]);
      }
      case "renew": {
        const { lease, by } = heldAt(step.lease);
        return by.runs[step.what](lease);
      }
      case "next": {
        const claim = await runs.claimNext(ADA, step.thread);
        return claim && claimed(claim);
      }
      case "look": {
        const found: Claim[] = [];
        for (let taken = 1; taken > 0; ) {
          const claims = await runs.claimAbandoned(1);
          taken = claims.length;
          found.push(...claims);
        }
        // A store may be out by a little in whose turn it is.
        return found.toSorted((a, b) => (a.lease.thread_id < b.lease.thread_id ? -1 : 1)).map(claimed);
      }
      case "steer":
        return runs.steer(ADA, step.thread, `run_${step.thread}${step.run}`, messageAt(step.nth));
      case "stop":
        return runs.requestStop(ADA, step.thread, `run_${step.thread}${step.run}`, step.mode);
      case "create":
        return threads.create(ADA, {
          ...{
            id: step.thread,
            metadata: {},
            messages: step.messages.map(messageAt),
            state: { todos: ["new"] },
          },
          ...(step.title === undefined ? {} : { title: step.title }),
          ...(step.parent === undefined
            ? {}
            : { parent: { thread_id: step.parent, run_id: "run_0", call_id: "call_0", background: true } }),
        });
      case "update":
        return threads.update(ADA, step.thread, {
          ...(step.title === undefined ? {} : { title: step.title }),
          ...(step.forget === undefined ? {} : { forget: step.forget }),
        });
      case "delete":
      case "clear":
        return threads[step.what](ADA, step.thread);
      case "fork":
        return threads.fork(
          ADA,
          step.thread,
          { id: step.to, metadata: {} },
          step.until === undefined ? undefined : messageAt(step.until).id,
        );
      case "open": {
        const about = call(step.thread, step.call);
        const what: string = step.what;
        if (what === "deliver") return deferredCalls.deliver(about.token_hash, { result: step.call });
        const run = await runs.begun(ADA, step.thread);
        return run && deferredCalls[step.what]({ ...about, run_id: run.id });
      }
      case "due":
        return (await deferredCalls.due(10))
          .map(({ thread_id, call_ids }) => [thread_id, call_ids.toSorted()])
          .toSorted();
      case "put":
        return items.put(
          { owner: ADA, of: { thread: step.thread }, kind: "notes" },
          {
            key: step.key,
            value: step.key,
            ...(step.version === undefined ? {} : { version: step.version }),
          },
        );
      case "list": {
        const { what: _, ...query } = step;
        const found: Thread[] = [];
        for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages++) {
          const page = await threads.list(ADA, omitUndefined({ ...query, cursor }));
          found.push(...page.items);
          cursor = page.next_cursor;
        }
        // On Redis a run that was refused may bring its thread to the front.
        return found.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      }
      default:
        return undefined;
    }
  }

  return (step: Step) =>
    answer(step).catch((error: unknown) => {
      if (error instanceof AppError) return { refused: error.code, details: error.details };
      throw error;
    });
}

/** Everything that a thread has. */
async function everything({ threads, runs, events, deferredCalls, items }: AllStores, id: string) {
  const all = (await runs.list(ADA, id, { limit: 50 })).items;
  const logs = all.map(async (run) => {
    const name = { owner: ADA, thread_id: id, run_id: run.id };
    const isOver = run.status !== "running" && run.status !== "pending";
    return isOver ? readAll({ events } as AllStores, name) : events.bounds(name);
  });
  const thread = await threads.measured(ADA, id);
  const messages = await threads.messages(ADA, id);
  const bytes = messages.reduce((sum, each) => sum + Buffer.byteLength(JSON.stringify(each)), 0);
  expect([thread?.bytes ?? 0, await threads.bytes(ADA, id)]).toEqual([bytes, bytes]);
  return {
    thread,
    messages,
    last: await threads.message(ADA, id),
    state: await threads.state(ADA, id),
    items: await items.list({ owner: ADA, of: { thread: id }, kind: "notes" }),
    calls: await Promise.all([0, 1, 2].map((n) => deferredCalls.get(call(id, n)))),
    runs: all,
    logs: await Promise.all(logs),
    active: await runs.active(ADA, id),
    known: await runs.known(ADA, id, "k"),
    first: await runs.begun(ADA, id, ""),
    latest: await runs.begun(ADA, id),
    places: await Promise.all(all.map((run) => runs.place(ADA, id, run.id))),
  };
}

/** A message that a store itself writes has an id and a time of its own. */
function comparable(value: unknown): unknown {
  const known = new Set(MESSAGES.map(({ id }) => id));
  const text = JSON.stringify(value, (_, each) => (each === undefined ? "(undefined)" : each)) ?? "";
  return JSON.parse(
    text
      .replaceAll(/msg_\w+/g, (id) => (known.has(id) ? id : "msg_of_store"))
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => (time.startsWith("2026-11-21T10:") ? time : "now")),
  );
}

/**
 * What each step was answered, and what is there in the end. The processes on a shared store take the steps in turn, and each acts
 * under its own leases. With `die` one of them dies after all leases are over, and another one takes all runs. Memory outlives that.
 */
async function played(open: Open, steps: readonly Step[]): Promise<unknown[]> {
  let time = Date.parse("2026-11-21T10:00:00.000Z");
  const options = { ...LIMITS, now: () => time };
  const first = await open(options);
  const processes = open.isShared && open.again ? [first, await open.again(options)] : [first];
  const leases: Held[] = [];
  const answers: unknown[] = [];
  const atTurn = () => processes[answers.length % processes.length] ?? first;
  const die = async () => {
    time += LIMITS.leaseMs + 1;
    if (open.again) {
      const dead = atTurn();
      await dead.close();
      processes[processes.indexOf(dead)] = await open.again(options);
    }
    leases.length = 0;
    return player(atTurn(), leases)({ what: "look" });
  };
  try {
    for (const step of steps) {
      answers.push([step.what, step.what === "die" ? await die() : await player(atTurn(), leases)(step)]);
      // What happens in one millisecond has no order.
      time += step.what === "wait" ? step.ms : 1;
    }
    for (const id of THREADS) answers.push(await everything(atTurn(), id));
  } finally {
    await Promise.all(processes.map((each) => each.close()));
  }
  return answers.map(comparable);
}

/** `seed` draws the commands. `often` is the number of lists of commands; at night there are ten times as many. */
export function anyCommandsContract(open: Open, often: number, seed?: number): void {
  const numRuns = isNightly ? 10 * often : often;
  test("any commands and batches of events have the same results as in memory, and lead to the same threads, logs and calls", () =>
    fc.assert(
      fc.asyncProperty(fc.array(Step, { minLength: 5, maxLength: 40, size: "max" }), async (steps) => {
        expect(await played(open, steps)).toEqual(
          await played(async (options) => createMemoryStores(options), steps),
        );
      }),
      { numRuns, examples: [[QUEUED]], ...(seed === undefined ? {} : { seed }) },
    ));
}
