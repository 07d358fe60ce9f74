// Exports all data of a user as JSON lines, one item per line. Reads page by page as the client consumes it, so memory
// does not grow with the amount of data.

import { hasCode } from "../../agent/core/errors.ts";
import type { RunRecord, Thread } from "../../agent/core/records.ts";
import { storedMessage } from "../../agent/core/stored-json.ts";
import type { Page } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { USAGE_DAYS } from "../quotas/store.ts";
import { ITEM_KINDS, shelvesOf } from "./delete-user.ts";
import type { AdminServices } from "./services.ts";

const PAGE = 50;
/** The number of bytes of messages to read at a time. */
const PAGE_BYTES = 256 * 1024;
const FORMAT = 1;

/** The last line has the type `end` and the number of lines before it. If it is missing, the export is incomplete. */
export async function* exportUser(services: AdminServices, owner: Owner): AsyncGenerator<string, void, void> {
  let lines = 0;
  for await (const line of linesOf(services, owner)) {
    lines += 1;
    yield `${line}\n`;
  }
  yield `${JSON.stringify({ type: "end", lines })}\n`;
}

async function* linesOf(services: AdminServices, owner: Owner): AsyncGenerator<string, void, void> {
  const { threads, items } = services.runs.stores;
  const line = (type: string, about: object) => JSON.stringify({ type, ...about });
  yield line("export", { format: FORMAT, ...owner, at: new Date().toISOString() });
  const list = (cursor: string | undefined) =>
    threads.list(owner, { limit: PAGE, children: true, ...omitUndefined({ cursor }) });
  // Collects all ids first, because a thread that changes during the export moves in the list.
  const ids: string[] = [];
  for await (const { id } of each(list)) ids.push(id);
  for (const id of ids) {
    const thread = await threads.get(owner, id);
    if (thread) yield* threadLines(services, owner, thread);
  }
  for (const shelf of await shelvesOf(services, owner))
    for (const item of await items.list(shelf))
      yield line("item", { kind: shelf.kind, ...shelf.of, ...item });
  for (const { type, list: listRecords } of services.records)
    for await (const record of each((cursor) =>
      listRecords(owner, { limit: PAGE, ...omitUndefined({ cursor }) }),
    ))
      yield line(type, record);
  for (const key of (await services.keys?.of(owner)) ?? []) yield line("key", key);
  const { usage } = await services.quotas.report(owner, USAGE_DAYS);
  for (const row of usage) yield line("usage", row);
}

async function* threadLines(
  { runs: { stores } }: AdminServices,
  owner: Owner,
  thread: Thread,
): AsyncGenerator<string, void, void> {
  const { id: thread_id } = thread;
  yield JSON.stringify({ type: "thread", ...thread });
  const place = JSON.stringify({ type: "message", thread_id }).slice(0, -1);
  for await (const text of messagesOf(stores.threads, owner, thread_id)) yield `${place},"message":${text}}`;
  yield JSON.stringify({ type: "state", thread_id, state: await stores.threads.state(owner, thread_id) });
  const list = (cursor: string | undefined) =>
    stores.runs.list(owner, thread_id, { limit: PAGE, ...omitUndefined({ cursor }) });
  for await (const run of each<RunRecord>(list)) yield JSON.stringify({ type: "run", ...run });
  for (const kind of ITEM_KINDS)
    for (const item of await stores.items.list({ owner, of: { thread: thread_id }, kind }))
      yield JSON.stringify({ type: "item", kind, thread: thread_id, ...item });
}

async function* messagesOf(
  threads: AdminServices["runs"]["stores"]["threads"],
  owner: Owner,
  id: string,
): AsyncGenerator<string, void, void> {
  for (let after: string | undefined; ; ) {
    try {
      const { texts, isLast } = await threads.messagePage(owner, id, { after, bytes: PAGE_BYTES });
      yield* texts;
      const last = texts.at(-1);
      if (isLast || last === undefined) return;
      after = storedMessage(last).id;
    } catch (error) {
      // Messages were removed from the thread during the export.
      if (hasCode(error, "not_found")) return;
      throw error;
    }
  }
}

async function* each<T>(
  list: (cursor: string | undefined) => Promise<Page<T>>,
): AsyncGenerator<T, void, void> {
  let cursor: string | undefined;
  do {
    const page = await list(cursor);
    yield* page.items;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}
