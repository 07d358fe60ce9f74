// Threads: create, find, annotate, copy and delete.

import { z } from "zod";
import { AppError, hasCode } from "../../../agent/core/errors.ts";
import { newThreadId } from "../../../agent/core/new-ids.ts";
import type { Thread } from "../../../agent/core/records.ts";
import { storedMessage } from "../../../agent/core/stored-json.ts";
import type { NewThread, ThreadStore } from "../../../agent/core/stores.ts";
import { assertNoBranch } from "../../../engine/runs/branches.ts";
import { notFound } from "../../../engine/runs/control.ts";
import { openOn } from "../../../engine/runs/start.ts";
import { deleteThreadTree, forkThread } from "../../../engine/runs/thread-actions.ts";
import { createWithMessages } from "../../../engine/runs/thread-bytes.ts";
import { boundedList, boundedMap } from "../../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf } from "../../../server/auth/guard.ts";
import { jsonOf, type Lists, listOf, payloadOf } from "../../../server/http/long-responses.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";
import { threadIdOf } from "../../messages.ts";
import { messageTexts, sendText } from "../answers.ts";
import { interruptsOf, messageShape, stateShape } from "../history.ts";
import { MAX_SENT_KEYS } from "../input.ts";
import { MAX_KEYS, scalarsIn } from "../modes.ts";
import { assistantIdOf } from "./assistants.ts";
import { ofAgent, valuesText } from "./states.ts";
import { pastOf, Supersteps } from "./update.ts";

const tags = ["langgraph"];

/** Accepts any id. If an id is not a valid thread id, its hash is used as the thread id. */
export const ThreadParams = z.object({ thread_id: z.string().min(1).max(1024).transform(threadIdOf) });

const mapOf = (most: number) => boundedMap(z.string(), z.unknown(), most).nullish();
const Metadata = mapOf(MAX_SENT_KEYS);
const ThreadShape = z
  .looseObject({ thread_id: z.string(), status: z.enum(["idle", "busy", "interrupted", "error"]) })
  .describe("thread_id, status, metadata, values, interrupts, created_at, updated_at");

const CreateBody = z
  .looseObject({
    thread_id: z.string().min(1).max(1024).nullish(),
    metadata: Metadata,
    if_exists: z.enum(["raise", "do_nothing"]).nullish(),
    supersteps: Supersteps.nullish().describe("Messages that the thread starts with."),
  })
  .default({});
const UpdateBody = z.looseObject({ metadata: Metadata });
/** The maximum number of keys in a search: the metadata of a thread, and the two names of its agent. */
const SOUGHT_KEYS = MAX_KEYS + 2;
const Filter = z.looseObject({
  metadata: mapOf(SOUGHT_KEYS),
  ids: boundedList(z.string().max(1024), 1000).nullish(),
  status: z.enum(["idle", "busy", "interrupted", "error"]).nullish(),
  values: Metadata,
});
type Filter = z.infer<typeof Filter>;
const SORTS = ["thread_id", "status", "created_at", "updated_at", "state_updated_at"] as const;
const SearchBody = Filter.extend({
  limit: z.int().min(1).max(1000).nullish(),
  offset: z.int().min(0).max(100_000).nullish(),
  sort_by: z.enum(SORTS).nullish(),
  sort_order: z.enum(["asc", "desc"]).nullish(),
  select: z.array(z.string().max(64)).max(32).nullish(),
}).default({});

type SelectedFields = readonly string[] | null | undefined;

const params = ThreadParams;

export function threadRoutes(app: App, services: RouteServices): void {
  createRoute(app, services);
  searchRoutes(app, services);
  threadRoute(app, services);
  changeRoutes(app, services);
}

function createRoute(app: App, services: RouteServices): void {
  const { threads } = services.stores;

  app.post(
    "/threads",
    { schema: { summary: "Create a thread", tags, body: CreateBody, response: { 200: ThreadShape } } },
    async (request) => {
      const { thread_id, metadata, if_exists, supersteps } = request.body;
      const owner = ownerOf(request);
      const id = thread_id ? threadIdOf(thread_id) : newThreadId();
      const messages = await pastOf(services, owner, supersteps ?? []);
      const thread = await created(services, owner, { id, messages, metadata: metadata ?? {} }).catch(
        async (error: unknown) => {
          const known = if_exists === "do_nothing" && hasCode(error, "already_exists");
          if (!known) throw error;
          return found(await threads.get(owner, id), id);
        },
      );
      return wholeShape(threads, owner, thread);
    },
  );
}

function searchRoutes(app: App, { stores: { threads }, unreadResponses }: RouteServices): void {
  app.post(
    "/threads/search",
    {
      schema: {
        summary: "List threads, most recently changed first",
        description: `Searches the user's newest ${MOST} threads. \`values.messages\` contains only the first message of the user and of the agent.`,
        tags,
        body: SearchBody,
        response: { 200: z.array(ThreadShape) },
      },
    },
    async (request, reply) => {
      const { limit, offset, sort_by, sort_order, select, ...filter } = request.body;
      const owner = ownerOf(request);
      const all = sorted(await search(threads, owner, filter), sort_by ?? "updated_at", sort_order ?? "desc");
      const [begin, most] = [offset ?? 0, limit ?? 10];
      reply.header("x-pagination-total", all.length);
      if (begin + most < all.length) reply.header("x-pagination-next", begin + most);
      const lists = listedTexts(threads, owner, { page: all.slice(begin, begin + most), select });
      return jsonOf(reply, await payloadOf(listOf(lists), () => unreadResponses.open(reply)));
    },
  );

  app.post(
    "/threads/count",
    {
      schema: {
        summary: "Count the threads that match a search",
        tags,
        body: Filter.default({}),
        response: { 200: z.int() },
      },
    },
    async (request) => (await search(threads, ownerOf(request), request.body)).length,
  );
}

function threadRoute(app: App, { stores: { threads }, unreadResponses }: RouteServices): void {
  app.get(
    "/threads/:thread_id",
    { schema: { summary: "Get a thread with its values", tags, params, response: { 200: ThreadShape } } },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id: id } = request.params;
      const thread = found(await threads.get(owner, id), id);
      const [messages, state] = await Promise.all([threads.messages(owner, id), threads.state(owner, id)]);
      const kept = await messageTexts(reply, messages, unreadResponses);
      const parts = threadText(await headShape(threads, owner, thread), kept.texts, state);
      return sendText(reply, { ...kept, parts }, unreadResponses);
    },
  );
}

function changeRoutes(app: App, { stores: { threads }, quotas, agents }: RouteServices): void {
  app.patch(
    "/threads/:thread_id",
    {
      schema: {
        summary: "Add to the metadata of a thread",
        tags,
        params,
        body: UpdateBody,
        response: { 200: ThreadShape, 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id: id } = request.params;
      const { metadata } = found(await threads.get(owner, id), id);
      const { own } = annotated(agents, request.body.metadata ?? {});
      const merged = scalarsIn({ ...metadata, ...own });
      const thread = found(await threads.update(owner, id, { metadata: merged }), id);
      const isMinimal = String(request.headers.prefer ?? "").includes("return=minimal");
      return isMinimal ? reply.code(204).send(null) : wholeShape(threads, owner, thread);
    },
  );

  app.delete(
    "/threads/:thread_id",
    {
      schema: {
        summary: "Delete a thread with its runs, and its subagents' threads",
        tags,
        params,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { thread_id: id } = request.params;
      found((await deleteThreadTree({ threads, quotas }, ownerOf(request), id)) || undefined, id);
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/threads/:thread_id/copy",
    { schema: { summary: "Copy a thread", tags, params, response: { 200: ThreadShape } } },
    async (request) => {
      const owner = ownerOf(request);
      const from = { owner, threadId: request.params.thread_id };
      return wholeShape(threads, owner, await forkThread({ threads, quotas }, from, {}));
    },
  );
}

/** Returns the agent that the metadata names, and the metadata without it. */
function annotated(agents: RouteServices["agents"], metadata: Readonly<Record<string, unknown>>) {
  const { graph_id, assistant_id, ...own } = metadata;
  const named = [graph_id, assistant_id];
  const agent = agents.list().find(({ name }) => named.includes(name) || named.includes(assistantIdOf(name)));
  return { own, agent: agent?.name };
}

interface NewThreadParts extends Pick<NewThread, "id" | "messages"> {
  readonly metadata: Readonly<Record<string, unknown>>;
}

function created(
  { stores: { threads }, runs, quotas, agents }: RouteServices,
  owner: Owner,
  { metadata, ...parts }: NewThreadParts,
): Promise<Thread> {
  assertNoBranch(parts.id);
  const { own, agent } = annotated(agents, metadata);
  const thread = { ...parts, metadata: scalarsIn(own), ...omitUndefined({ agent }) };
  return createWithMessages({ threads, quotas, threadBytes: runs.threadBytes }, owner, thread);
}

/** Returns the user's matching threads among the most recently changed ones. */
async function search(
  threads: ThreadStore,
  owner: Owner,
  { metadata, ids, status, values }: Filter,
): Promise<Thread[]> {
  // Not supported, because no front end searches states.
  if (values && Object.keys(values).length > 0)
    throw new AppError("invalid_request", "values: is not supported. Search by `metadata`.");
  const wanted = ids && new Set(ids.map(threadIdOf));
  const sought = Object.entries(metadata ?? {});
  const fits = (thread: Thread) => {
    const own: Readonly<Record<string, unknown>> = { ...thread.metadata, ...ofAgent(thread) };
    const isWanted = ([key, value]: [string, unknown]) =>
      own[key] === value || (key === "assistant_id" && own.graph_id === value);
    return (!wanted || wanted.has(thread.id)) && sought.every(isWanted);
  };
  const all: Thread[] = [];
  for (let cursor: string | undefined; all.length < MOST; ) {
    const query = { limit: PAGE, ...omitUndefined({ cursor, status: status ?? undefined }) };
    const page = await threads.list(owner, query);
    all.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === undefined) break;
  }
  return all.filter(fits);
}

const headShape = async (threads: ThreadStore, owner: Owner, thread: Thread) => ({
  thread_id: thread.id,
  created_at: thread.created_at,
  updated_at: thread.updated_at,
  state_updated_at: thread.updated_at,
  metadata: { ...thread.metadata, ...omitUndefined({ title: thread.title }), ...ofAgent(thread) },
  status: thread.status,
  config: {},
  interrupts: await interruptsOn(threads, owner, thread),
});

/** Groups the interrupts by task. All interrupts of a run belong to one task. */
async function interruptsOn(threads: ThreadStore, owner: Owner, { id, status }: Thread) {
  const open = status === "interrupted" ? interruptsOf(await openOn(threads, owner, id)) : [];
  const [first] = open;
  return first ? { [first.id]: open } : {};
}

const wholeShape = (threads: ThreadStore, owner: Owner, thread: Thread) =>
  listed(threads, owner, { thread, select: undefined });

/** Loads each thread once the client has read the previous one. */
async function* listedTexts(
  threads: ThreadStore,
  owner: Owner,
  { page, select }: { readonly page: readonly Thread[]; readonly select: SelectedFields },
): Lists {
  let bytes = 0;
  for (const thread of page) {
    // Beyond the size limit of the response, the values are left out. Clients can read them thread by thread.
    const text = JSON.stringify(
      await listed(threads, owner, { thread, select: bytes > LIST_BYTES ? [] : select }),
    );
    bytes += text.length;
    yield [text];
  }
}

interface Entry {
  readonly thread: Thread;
  readonly select: SelectedFields;
}

/** Returns a thread as an entry of a list, with only the messages from which front ends derive titles. */
async function listed(threads: ThreadStore, owner: Owner, { thread, select }: Entry) {
  const { id } = thread;
  const head = await headShape(threads, owner, thread);
  const wantsValues = !select || select.some((each) => each === "values" || each.startsWith("values."));
  if (!wantsValues) return { ...head, values: null };
  const { texts } = await threads.messagePage(owner, id, { limit: FIRST, bytes: FIRST_BYTES });
  const state = await threads.state(owner, id);
  const messages = texts.map(storedMessage);
  const shown = ["user", "assistant"].flatMap((role) => messages.find((each) => each.role === role) ?? []);
  const values = { messages: shown.map(messageShape), ...stateShape(state) };
  return { ...head, values };
}

/** The maximum number of threads that a search reads. */
const MOST = 1000;
const PAGE = 100;
/** The number of messages in which to look for the first user message and the first answer. */
const FIRST = 8;
const FIRST_BYTES = 256 * 1024;
/** The maximum number of bytes of values in a list of threads. */
const LIST_BYTES = 16 * 1024 * 1024;

function found<T>(thing: T | undefined, id: string): T {
  if (thing === undefined) throw notFound("thread", id);
  return thing;
}

function sorted(threads: readonly Thread[], by: (typeof SORTS)[number], order: "asc" | "desc"): Thread[] {
  const field = { thread_id: "id", state_updated_at: "updated_at" } as const;
  const key = by === "thread_id" || by === "state_updated_at" ? field[by] : by;
  const sign = order === "asc" ? 1 : -1;
  return threads.toSorted((a, b) => sign * (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0));
}

/** Yields a thread with all its values, in parts. */
function* threadText(
  head: object,
  texts: readonly string[],
  state: Readonly<Record<string, unknown>>,
): Generator<string, void, void> {
  yield `${JSON.stringify(head).slice(0, -1)},"values":`;
  yield* valuesText(texts, { ...stateShape(state) });
  yield "}";
}
