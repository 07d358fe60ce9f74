// Reads the data in Redis with read-only commands. The data is not from a single moment, because processes may write in
// the meantime.

import { type ChainableCommander, type Cluster, Redis } from "ioredis";
import type { CallState } from "../../../agent/core/deferred-calls.ts";
import { isSettled, type ThreadStatus } from "../../../agent/core/records.ts";
import type { CallFacts, Inspection, Question, RunFacts, ThreadFacts } from "../check/facts.ts";
import { type LogOutline, NO_LOG, withRow } from "../check/log-outline.ts";
import { NO_MESSAGES, withMessages } from "../check/messages-outline.ts";
import { questionsIn } from "../check/sql.ts";
import { DUE_SETS, dueIn, SUM_SETS, sumsIn } from "./beside-threads.ts";
import { type Clients, openClients, refusal } from "./client.ts";
import { assertFormat } from "./format.ts";
import {
  DEFERRED,
  DUE,
  eventsKey,
  FORMAT_KEY,
  OWNERS,
  THREAD,
  tenantTag,
  threadIdOf,
  threadKeys,
  threadsKey,
} from "./keys.ts";
import { ownerOf, patchName, runOf, stateOf } from "./records.ts";
import { entriesOf } from "./row-format.ts";

const DEADLINE_MS = 10_000;
/** The number of keys that Redis scans in one step. */
const SCANNED = 1_000;
/** The number of messages or log rows to read with their text at a time. */
const PAGE = 32;
/** The number of members of a sorted set to read at a time. */
const MEMBERS = 500;

/** A key of a thread other than its `meta`. Excludes staged messages and deletion marks, which expire on their own. */
const PART = new RegExp(
  `^sk:\\{([\\w-]{22}:[\\w-]+)\\}:(?:(?:${THREAD.filter((each) => each !== "meta").join("|")})$|events:)`,
);
const META = /^sk:\{(.+)\}:meta$/;

/** Throws `unavailable` if Redis cannot be read. */
export async function inspectRedis(url: string, { eventsMs }: { eventsMs: number }): Promise<Inspection> {
  const clients = await openClients(url, DEADLINE_MS);
  const close = async () => {
    for (const each of [clients.commands, clients.bulk, clients.messages]) each.disconnect();
  };
  try {
    assertFormat(await clients.commands.get(FORMAT_KEY));
    return inspection(clients, { eventsMs, close });
  } catch (error) {
    await close();
    throw refusal(error);
  }
}

function inspection(
  { commands: redis }: Clients,
  { eventsMs, close }: { readonly eventsMs: number; close(): Promise<void> },
): Inspection {
  return {
    isOfOneMoment: false,
    close,

    async *threads() {
      for await (const keys of pagesOfKeys(redis, "sk:{*}:meta"))
        yield keys.flatMap((key) => META.exec(key)?.[1] ?? []);
    },

    thread: (tag) => steadily(redis, tag, () => threadOf(redis, tag, eventsMs)),

    async *remains() {
      for await (const keys of pagesOfKeys(redis, "sk:{*}:*")) {
        const parts = keys.flatMap((key) => {
          const tag = PART.exec(key)?.[1];
          return tag === undefined ? [] : [{ key, tag }];
        });
        const exist = await Promise.all(parts.map(({ tag }) => redis.exists(threadKeys(tag).meta)));
        for (const [at, { key }] of parts.entries()) if (exist[at] === 0) yield remaining(key);
      }
    },

    async remain(text) {
      const key = text.slice(REMAINS.length);
      const tag = PART.exec(key)?.[1] ?? "";
      return (await redis.exists(key)) === 1 && (await redis.exists(threadKeys(tag).meta)) === 0;
    },

    due: (time) => dueIn(redis, pagesOfKeys(redis, DUE_SETS), time),

    async *sums() {
      for await (const keys of pagesOfKeys(redis, SUM_SETS))
        for (const key of keys) {
          const wrong = await sumsIn(redis, key);
          // The data changed while it was counted.
          if (wrong.some(({ recorded, counted }) => recorded !== counted)) yield await sumsIn(redis, key);
        }
    },
  };
}

/** The maximum number of times to read a thread in use until it does not change during the read. */
const ATTEMPTS = 5;

/** Returns the result of `read` about the thread. The result is consistent unless the thread keeps changing. */
async function steadily<T>(redis: Redis | Cluster, tag: string, read: () => Promise<T>): Promise<T> {
  const { meta, lease, ids } = threadKeys(tag);
  const look = async () =>
    JSON.stringify(
      await together(redis, (all) =>
        all.hmget(meta, "version", "updated").hmget(lease, "run", "epoch", "seq").hlen(ids),
      ),
    );
  for (let attempt = 1, before = await look(); ; attempt++) {
    const found = await read();
    const after = await look();
    if (after === before || attempt === ATTEMPTS) return found;
    before = after;
  }
}

const REMAINS = "The thread that this belongs to does not exist: ";
const remaining = (key: string) => `${REMAINS}${key}`;

async function threadOf(
  redis: Redis | Cluster,
  tag: string,
  eventsMs: number,
): Promise<ThreadFacts | undefined> {
  const keys = threadKeys(tag);
  const id = threadIdOf(tag);
  const [about, held, queue, order, made, requests, inbox, deferred, replies, lengths] = await together<
    [
      (string | null)[],
      (string | null)[],
      string[],
      string[],
      Record<string, string>,
      string[],
      number,
      Record<string, string>,
      string[],
      number,
    ]
  >(redis, (all) =>
    all
      .hmget(keys.meta, "owner", "outcome", "bytes", "updated")
      .hmget(keys.lease, "run", "attempt", "seq")
      .lrange(keys.queue, 0, -1)
      .lrange(keys.order, 0, -1)
      .hgetall(keys.runs)
      .hkeys(keys.requests)
      .hlen(keys.inbox)
      .hgetall(keys.deferred)
      .hkeys(keys.replies)
      .hlen(keys.ids),
  );
  const [ownerText, outcome, bytes, updated] = about;
  if (!ownerText) return undefined;
  const owner = ownerOf(ownerText);
  const [run, attempt = null, seq] = held;
  const isBusy = Boolean(run) || queue.length > 0;
  const runs: RunFacts[] = [];
  for (const each of order) {
    const text = made[each];
    if (text === undefined) continue;
    const end = made[`end:${each}`] ?? null;
    const { status, ended_at } = runOf(id, [each, text, end, run === each ? attempt : null]);
    runs.push({
      id: each,
      status,
      hasRequest: requests.includes(each),
      // `end` contains the attempt in which the run ended, the time of the end, and the last entry.
      last: isSettled(status) ? Number(end?.split(" ", 3)[2]) : undefined,
      keepsLog: ended_at === undefined || Date.parse(ended_at) > Date.now() - eventsMs,
      log: await logOf(redis, eventsKey(tag, each)),
    });
  }
  const tenant = tenantTag(owner);
  const [listed, noted, scheduled, called] = await Promise.all([
    redis.zscore(threadsKey(owner), id),
    redis.zscore(OWNERS, ownerText),
    redis.zscore(DUE.threads + tenant, tag),
    redis.zscore(DEFERRED.threads + tenant, tag),
  ]);
  return {
    owner,
    id,
    status: isBusy ? "busy" : ((outcome || "idle") as ThreadStatus),
    // Each message has its id in a separate hash.
    counted: { messages: lengths, bytes: bytes === null ? undefined : Number(bytes) },
    messages: await messagesOf(redis, keys.messages),
    active: run ? { run, last: Number(seq) } : undefined,
    queue,
    runs,
    calls: callsOf(deferred, replies),
    inbox: inbox > 0 ? [run ?? "(none)"] : [],
    questions: await questionsOf(redis, tag, runs),
    isListed: listed !== null && noted !== null,
    isFound: { runs: scheduled !== null, calls: called !== null },
    updatedAt: Number(updated),
  };
}

/** Parses a call, which consists of its state, three other words, and the arguments with which it was opened. */
function callsOf(deferred: Readonly<Record<string, string>>, replies: readonly string[]): CallFacts[] {
  return Object.entries(deferred).map(([id, text]) => {
    const [, state = "", about = "{}"] = /^(\S+) \S+ \S+ \S+ (.*)$/s.exec(text) ?? [];
    const { run_id: run } = JSON.parse(about) as { run_id: string };
    // `put_call` writes no other state.
    return { id, run, state: state as CallState, hasReply: replies.includes(id) };
  });
}

async function messagesOf(redis: Redis | Cluster, key: string) {
  let messages = NO_MESSAGES;
  for (let from = 0; ; from += PAGE) {
    const texts = await redis.lrange(key, from, from + PAGE - 1);
    messages = withMessages(
      messages,
      texts.map((text, at) => ({
        position: from + at,
        bytes: Buffer.byteLength(text),
        calls: callsIn(text),
      })),
    );
    if (texts.length < PAGE) return messages;
  }
}

function callsIn(text: string): string[] {
  // This list contains only messages.
  const { tool_calls = [] } = JSON.parse(text) as { tool_calls?: { id: string }[] };
  return tool_calls.map(({ id }) => id);
}

async function logOf(redis: Redis | Cluster, key: string): Promise<LogOutline> {
  let log = NO_LOG;
  for await (const rows of logPages(redis, key))
    for (const entries of rows) {
      const last = entries.at(-1);
      if (last)
        log = withRow(log, { last: last.seq, entries: entries.length, epoch: last.epoch, event: last.event });
    }
  return log;
}

async function* logPages(redis: Redis | Cluster, key: string) {
  for (let after = "-"; ; ) {
    const rows = await redis.xrange(key, after, "+", "COUNT", PAGE);
    yield rows.map(([row, [, , , text = ""]]) => entriesOf([row, text]));
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    after = `(${last[0]}`;
  }
}

async function questionsOf(
  redis: Redis | Cluster,
  tag: string,
  runs: readonly RunFacts[],
): Promise<Question[]> {
  const { state, patches } = threadKeys(tag);
  const set = await redis.hget(state, "interrupts");
  const merged: string[] = [];
  for (let cursor = "0"; ; ) {
    const [next, found] = await redis.hscan(
      patches,
      cursor,
      "MATCH",
      `${patchName("interrupts")}*`,
      "COUNT",
      MEMBERS,
    );
    merged.push(...found);
    cursor = next;
    if (cursor === "0") break;
  }
  const slot = stateOf(set === null ? [] : ["interrupts", set], merged).interrupts;
  return questionsIn(slot, runs, async (run) => {
    const asked: string[] = [];
    for await (const rows of logPages(redis, eventsKey(tag, run)))
      for (const { event, json } of rows.flat()) if (event === "on_interrupt") asked.push(json);
    return asked;
  });
}

/** Sends all commands at once. Redis usually executes them without running other commands in between. */
async function together<Replies extends unknown[]>(
  redis: Redis | Cluster,
  add: (all: ChainableCommander) => ChainableCommander,
): Promise<Replies> {
  const replies = (await add(redis.pipeline()).exec()) ?? [];
  for (const [error] of replies) if (error) throw error;
  return replies.map(([, reply]) => reply) as Replies;
}

/** Yields pages of keys. The same key may occur more than once. */
async function* pagesOfKeys(redis: Redis | Cluster, pattern: string): AsyncGenerator<string[], void, void> {
  const nodes = redis instanceof Redis ? [redis] : redis.nodes("master");
  for (const node of nodes)
    for await (const keys of node.scanStream({ match: pattern, count: SCANNED })) yield keys as string[];
}
