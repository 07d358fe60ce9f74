import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { NewRun, StartResult } from "../../../src/agent/core/stores.ts";
import { changeVersioned } from "../../../src/engine/stores/kernel.ts";
import { DEFAULTS } from "../../../src/engine/stores/options.ts";
import * as rules from "../../../src/engine/stores/rules.ts";
import {
  type Decision,
  headAfter,
  headAfterEnd,
  type Lookups,
  type StoredRun,
  type ThreadHead,
  type View,
  type Write,
} from "../../../src/engine/stores/thread-head.ts";
import { ADA, newRun } from "./fixture.ts";

const LIMITS = { ...DEFAULTS, leaseMs: 10, queueLength: 2, inboxLength: 2 };

interface Stored extends StoredRun {
  readonly key: string | undefined;
}

interface VersionedView extends View {
  readonly version: number;
}

/** One thread in a store that commits by compare-and-set. Every commit is checked. */
class Thread {
  now = 0;
  until = 0;
  head: ThreadHead | undefined;
  readonly runs = new Map<string, Stored>();
  readonly #commits = new Map<string, { readonly at: number }>();
  #version = 0;

  view({ key, run, next }: Lookups): VersionedView {
    const ahead = this.head?.active?.run ?? this.head?.queue[0];
    const known = [...this.runs.values()].find((each) => key !== undefined && each.key === key);
    return {
      version: this.#version,
      now: this.now,
      head: this.head,
      until: this.until,
      known: known?.record,
      run: this.runs.get(run ?? ""),
      next: next && this.runs.get(ahead ?? ""),
      busyThreads: 0,
    };
  }

  commit(view: VersionedView, writes: readonly Write[], id: string, lookups: Lookups) {
    const repeated = this.#commits.get(id);
    if (repeated) return repeated;
    if (view.version !== this.#version) return { newer: this.view(lookups) };
    const before = this.head;
    for (const write of writes) {
      this.head = headAfter(this.head, write, ADA);
      this.#record(write);
    }
    this.#version++;
    this.check(before);
    const done = { at: this.now };
    this.#commits.set(id, done);
    return done;
  }

  end(): void {
    const run = this.head?.active?.run;
    if (!this.head || run === undefined) return;
    this.head = headAfterEnd(this.head);
    this.#set(run, { status: "success" });
    this.#version++;
  }

  /** One run is active at a time, each that waits stands in the queue once, epochs and attempts only grow. */
  check(before: ThreadHead | undefined): void {
    const { active, queue } = this.head ?? { active: undefined, queue: [] };
    const withStatus = (status: RunRecord["status"]) =>
      [...this.runs.values()].filter(({ record }) => record.status === status).map(({ record }) => record.id);
    expect(withStatus("running")).toEqual(active ? [active.run] : []);
    expect([...queue].sort()).toEqual(withStatus("pending").sort());
    expect(queue.length).toBeLessThanOrEqual(LIMITS.queueLength + 1);
    if (!active || before?.active?.run !== active.run) return;
    expect(active.epoch).toBeGreaterThanOrEqual(before.active.epoch);
    expect(active.attempt).toBeGreaterThanOrEqual(before.active.attempt);
    expect(active.attempt).toBeLessThanOrEqual(active.epoch);
    if (before.active.stop === "cancel") expect(active.stop).toBe("cancel");
  }

  #record(write: Write): void {
    if (write.write === "add_run") {
      const { id, thread_id, agent, metadata, request, idempotency_key } = write.run;
      const shape = { id, thread_id, agent, metadata, attempt: 1, usage: NO_USAGE, created_at: "" };
      this.runs.set(id, { record: { ...shape, status: "pending" }, request, key: idempotency_key });
    }
    if (write.write === "hold_run") {
      this.until = this.now + LIMITS.leaseMs;
      this.#set(write.run, { status: "running", attempt: write.attempt });
    }
    if (write.write === "release_run") this.until = 0;
    if (write.write === "cancel_run") this.#set(write.run, { status: write.ending.status });
  }

  #set(id: string, change: Partial<RunRecord>): void {
    const run = this.runs.get(id);
    if (run) this.runs.set(id, { ...run, record: { ...run.record, ...change } });
  }
}

/** A command by its name, with small numbers for what it names, so that commands meet. */
const command = fc.record({
  name: fc.constantFrom("start", "enqueue", "stop", "cancel", "take", "release", "end", "wait"),
  run: fc.integer({ min: 0, max: 5 }),
  whenBusy: fc.constantFrom("reject", "queue", "front"),
  isRepeated: fc.boolean(),
} as const);
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

const runNumber = (number: number): NewRun =>
  newRun("t", { id: `run-${number}`, idempotency_key: `key-${number % 4}` });

function decisionOf(
  { name, run, whenBusy }: Command,
  thread: Thread,
): [Lookups, (view: View) => Decision<unknown>] {
  const news = runNumber(run);
  const start = { owner: ADA, run: news, whenBusy, limits: LIMITS };
  const active = thread.head?.active;
  const lease = { owner: ADA, thread_id: "t", run_id: active?.run ?? "", epoch: active?.epoch ?? 0 };
  switch (name) {
    case "start":
      return [{ key: news.idempotency_key, run: news.id }, (view) => rules.start(view, start)];
    case "enqueue":
      return [
        { key: news.idempotency_key, run: news.id, busyThreads: true },
        (view) => rules.enqueue(view, start),
      ];
    case "stop":
    case "cancel":
      return [{ run: news.id }, (view) => rules.stop(view, name === "stop" ? "interrupt" : "cancel")];
    case "release":
      return [{}, (view) => rules.release(view, lease)];
    default:
      return [{ next: true }, (view) => rules.takeOver(view, LIMITS)];
  }
}

describe("the rules of runs", () => {
  test("lose no run and allow one active run at a time, however commands interleave and responses are lost", () =>
    fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(command, { maxLength: 25 }), async (scheduler, commands) => {
        const thread = new Thread();
        const accepted = new Map<string, string>();
        const each = async (given: Command) => {
          if (given.name === "end") return thread.end();
          if (given.name === "wait") {
            thread.now += LIMITS.leaseMs + 1;
            return;
          }
          const [lookups, decide] = decisionOf(given, thread);
          const store = {
            load: () => scheduler.schedule(Promise.resolve(), "load").then(() => thread.view(lookups)),
            async commit(view: VersionedView, writes: readonly Write[], id: string) {
              await scheduler.schedule(Promise.resolve(), "commit");
              const reply = thread.commit(view, writes, id, lookups);
              if (!given.isRepeated || "newer" in reply) return reply;
              // The answer was lost, and others came before it was asked for again.
              await scheduler.schedule(Promise.resolve(), "commit again");
              const again = thread.commit(view, writes, id, lookups);
              expect(again).toEqual(reply);
              return again;
            },
          };
          const result = await changeVersioned(store, decide).catch((error: unknown) => {
            expect(error).toBeInstanceOf(AppError);
            return undefined;
          });
          if (given.name !== "start" && given.name !== "enqueue") return;
          const found = result as StartResult | undefined;
          if (!found) return;
          const id = found.outcome === "claimed" ? found.claim.run.id : found.run.id;
          const key = `key-${given.run % 4}`;
          // An idempotency key names one run for good.
          expect(accepted.get(key) ?? id).toBe(id);
          accepted.set(key, id);
        };
        await scheduler.waitFor(
          Promise.all(
            commands.map(async (given) => {
              await scheduler.schedule(Promise.resolve(), given.name);
              await each(given);
            }),
          ),
        );
        for (const id of accepted.values()) expect(thread.runs.has(id)).toBe(true);
        // With a process that takes and ends, every accepted run ends.
        for (let left = 0; left < 40 && (thread.head?.active || thread.head?.queue.length); left++) {
          thread.now += LIMITS.leaseMs + 1;
          const lookups = { next: true } as const;
          const store = {
            load: async () => thread.view(lookups),
            commit: async (view: VersionedView, writes: readonly Write[], id: string) =>
              thread.commit(view, writes, id, lookups),
          };
          const taken = await changeVersioned(store, (view) => rules.takeOver(view, LIMITS));
          expect(taken.claim).toBeDefined();
          thread.end();
        }
        for (const { record } of thread.runs.values())
          expect(["success", "cancelled"]).toContain(record.status);
      }),
      { numRuns: 300 },
    ));

  test("refuse a new run in a fixed order: known key, existing run, busy, full queue, unknown message, full tenant", () => {
    const head: ThreadHead = { owner: ADA, id: "t", active: undefined, queue: [] };
    const busy = { ...head, queue: ["a"] };
    const full = { ...head, queue: ["a", "b"] };
    const begin = { owner: ADA, run: newRun("t"), whenBusy: "reject", limits: LIMITS } as const;
    const queued = rules.enqueue({ now: 0, head: undefined, until: 0, busyThreads: 0 }, begin);
    const { run: record } = queued.result(0);
    const run = { record, request: undefined };
    const view = (more: Partial<View>): View => ({ now: 0, head, until: 0, ...more });
    const codeOf = (given: View, whenBusy: "reject" | "queue", rewind_to?: string) => {
      try {
        const news = newRun("t", rewind_to === undefined ? {} : { rewind_to });
        return rules.enqueue(given, { owner: ADA, run: news, whenBusy, limits: LIMITS }).result(0).outcome;
      } catch (error) {
        return error instanceof AppError ? error.code : error;
      }
    };
    expect(codeOf(view({ known: record, run, head: full }), "reject", "m")).toBe("known");
    expect(codeOf(view({ run, head: full }), "reject", "m")).toBe("already_exists");
    expect(codeOf(view({ head: full }), "reject")).toBe("thread_busy");
    expect(codeOf(view({ head: busy }), "queue", "m")).toBe("thread_busy");
    expect(codeOf(view({ head: full }), "queue")).toBe("queue_full");
    expect(codeOf(view({}), "queue", "m")).toBe("invalid_request");
    expect(codeOf(view({ hasMessage: true }), "queue", "m")).toBe("limit_exceeded");
    expect(codeOf(view({}), "queue")).toBe("limit_exceeded");
    expect(codeOf(view({ head: busy }), "queue")).toBe("queued");
  });

  test("fail a run after five attempts in which its process died, without attempts that it released or lost alive", () => {
    const ENDS = ["died", "released", "lost"] as const;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...ENDS), { maxLength: 12 }), (ends) => {
        const thread = new Thread();
        const change = (lookups: Lookups, decide: (view: View) => Decision<unknown>) => {
          const view = thread.view(lookups);
          const { writes, result } = decide(view);
          if (writes.length > 0) thread.commit(view, writes, `${Math.random()}`, lookups);
          return result(0);
        };
        const start = { owner: ADA, run: runNumber(0), whenBusy: "reject", limits: LIMITS } as const;
        change({}, (view) => rules.start(view, start));
        let died = 0;
        for (const end of ends) {
          const { run: run_id = "", epoch = 0 } = thread.head?.active ?? {};
          const lease = { owner: ADA, thread_id: "t", run_id, epoch };
          if (end === "released") change({}, (view) => rules.release(view, lease));
          else died++;
          thread.now += LIMITS.leaseMs + 1;
          const take = (mostDeaths: number) =>
            change({ next: true }, (view) => rules.takeOver(view, LIMITS, mostDeaths)) as rules.TakeOver;
          const isSpent = died >= LIMITS.maxAttempts;
          if (died > 0 && !isSpent)
            expect(take(died - 1)).toEqual({ until: thread.now + LIMITS.leaseMs / 4 });
          const taken = take(isSpent ? 0 : died);
          expect(taken.claim && taken.spent).toBe(isSpent ? died : undefined);
          expect(taken.claim?.deaths).toBe(isSpent || died === 0 ? undefined : died);
          if (isSpent) return;
          if (end !== "lost") continue;
          change({}, (view) => rules.excuse(view, lease));
          died--;
        }
      }),
    );
  });
});
