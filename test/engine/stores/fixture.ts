// What the contract suites start from: stores with a clock that tests move, runs, and readers.

import { test } from "vitest";
import { NO_USAGE, type UserMessage, userMessage } from "../../../src/agent/core/message.ts";
import { newRunId } from "../../../src/agent/core/new-ids.ts";
import type { Claim, LogEntry, NewRun, RunKey, Stores } from "../../../src/agent/core/stores.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import type { StoreOptions } from "../../../src/engine/stores/options.ts";
import type { EventData, StreamEvent } from "../../../src/protocol/event.ts";
import type { Owner } from "../../../src/protocol/ids.ts";

/** Opens empty stores of their own. */
export interface Open {
  (options?: StoreOptions): Promise<AllStores>;
  /** With these stores the suites test as well what is decided above all stores. */
  readonly rules?: true;
  /** Opens those that were opened last once more. Absent where nothing outlasts them. */
  readonly again?: (options?: StoreOptions) => Promise<AllStores>;
  /** Several processes may have them open at once. */
  readonly isShared?: boolean;
}

/** Where no test is about deadlines: longer than a busy machine lets a store wait. */
export const PATIENT = { deadlineMs: 60_000 } as const;

/** Opens empty stores at another place each time. */
export function openingAgain<Place>(
  newPlace: () => Place | Promise<Place>,
  openAt: (place: Place, options?: StoreOptions) => Promise<AllStores>,
  isShared = false,
): Open {
  let last = newPlace;
  return Object.assign(
    async (options?: StoreOptions) => {
      const place = await newPlace();
      last = () => place;
      return openAt(place, options);
    },
    { again: async (options?: StoreOptions) => openAt(await last(), options), isShared },
  );
}

/** `test` for a decision that no store makes itself. The others only have to carry out the same: see contracts/any-commands.ts. */
export const ruleTest = ({ rules }: { readonly rules?: true }): typeof test =>
  rules ? test : (Object.assign(() => {}, { each: () => () => {} }) as unknown as typeof test);

export const ADA: Owner = { tenant: "acme", user: "ada" };
export const BOB: Owner = { tenant: "acme", user: "bob" };

/** Owners that naive keys take for one. */
export const NEIGHBOURS: [name: string, owner: Owner, neighbour: Owner][] = [
  ["another user", ADA, { tenant: "acme", user: "bob" }],
  ["another tenant's user of the same name", ADA, { tenant: "other", user: "ada" }],
  ["names that join alike", { tenant: "a", user: "b:c" }, { tenant: "a:b", user: "c" }],
  ["names with slashes", { tenant: "a", user: "b/c" }, { tenant: "a/b", user: "c" }],
  ["names with zeros", { tenant: "a", user: "b\u0000c" }, { tenant: "a\u0000b", user: "c" }],
  ["names with quotes", { tenant: 'a","b', user: "c" }, { tenant: "a", user: 'b","c' }],
  ["names that are not Unicode", { tenant: "a", user: "\ud800" }, { tenant: "a", user: "\ud801" }],
  ["names that differ in case", { tenant: "a", user: "ada" }, { tenant: "a", user: "Ada" }],
  ["no name at all", { tenant: "a", user: "" }, { tenant: "", user: "a" }],
];

export interface World {
  readonly stores: AllStores;
  /** Moves the clock of the stores, in ms. */
  advance(ms: number): void;
}

/** Runs `body` with stores that are closed afterwards in any case. */
export async function inWorld(
  open: Open,
  body: (world: World) => Promise<void>,
  options: StoreOptions = {},
): Promise<void> {
  let time = Date.parse("2026-11-21T10:00:00.000Z");
  const stores = await open({ now: () => time, ...options });
  try {
    await body({
      stores,
      advance: (ms) => {
        time += ms;
      },
    });
  } finally {
    await stores.close();
  }
}

export function newRun(thread_id: string, more: Partial<NewRun> = {}): NewRun {
  const request = { settings: {}, input: [userMessage("hello")] };
  return { id: newRunId(), thread_id, agent: "helper", request, metadata: {}, ...more };
}

/** Starts a run on a free thread. */
export async function claimed(
  stores: Stores,
  thread_id: string,
  { owner = ADA, ...more }: Partial<NewRun> & { owner?: Owner } = {},
): Promise<Claim> {
  const result = await stores.runs.start(owner, newRun(thread_id, more), "reject");
  if (result.outcome !== "claimed") throw new Error(`The run was not claimed but ${result.outcome}.`);
  return result.claim;
}

export const delta = (text: string): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { delta: text },
});
export const note = (text: string): StreamEvent => ({
  event: "warning",
  data: { code: "note", message: text },
});
export const message = (text: string): Extract<StreamEvent, { event: "on_message" }> => ({
  event: "on_message",
  data: { message: userMessage(text) },
});
export const said = (value: UserMessage): StreamEvent => ({ event: "on_message", data: { message: value } });
export const state = (key: string, value: unknown): StreamEvent => ({
  event: "on_state",
  data: { key, value },
});
export const patch = (key: string, value: Record<string, unknown>): StreamEvent => ({
  event: "on_state",
  data: { key, patch: value },
});
export const done = (
  status: "success" | "interrupted" | "cancelled" | "error" = "success",
  more: Partial<EventData<"done">> = {},
): StreamEvent => ({
  event: "done",
  data: { status, stop_reason: "end_turn", usage: NO_USAGE, ...more },
});
export const failure = (text: string): StreamEvent => ({
  event: "error",
  data: { code: "internal", message: text },
});

export const keyOf = ({ lease: { owner, thread_id, run_id } }: Claim): RunKey => ({
  owner,
  thread_id,
  run_id,
});

const NEVER = new AbortController().signal;

/** All entries after `after`, until the log ends. */
export async function readAll(stores: Stores, key: RunKey, after = 0, signal = NEVER): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const batch of stores.events.read(key, after, signal)) entries.push(...batch);
  return entries;
}

/** The first `count` entries after `after`. */
export async function readSome(stores: Stores, key: RunKey, count: number, after = 0): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const batch of stores.events.read(key, after, NEVER)) {
    entries.push(...batch);
    if (entries.length >= count) break;
  }
  return entries;
}

export const eventsOf = (entries: readonly LogEntry[]): StreamEvent[] =>
  entries.map(({ json }) => JSON.parse(json));
export const seqsOf = (entries: readonly LogEntry[]) => entries.map(({ seq }) => seq);
export const upTo = (last: number, first = 1) =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i);
