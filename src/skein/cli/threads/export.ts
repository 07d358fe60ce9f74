// `skein threads export`: writes a user's threads to a folder, from a store or a running server. It reads one thread at
// a time, page by page.

import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { AppError, hasCode } from "../../../agent/core/errors.ts";
import type { Message } from "../../../agent/core/message.ts";
import type { Thread } from "../../../agent/core/records.ts";
import type { ThreadStore } from "../../../agent/core/stores.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { t } from "../texts.ts";
import { carried, historyFile, metadataFile, type ThreadFile } from "./files.ts";

const THREADS_A_PAGE = 100;
const MESSAGES_A_PAGE = 100;

export type ReadableThreads = Pick<ThreadStore, "list" | "get" | "messages" | "state">;

/**
 * Exports the threads and returns a summary. Throws `already_exists` if a thread's folder exists, because files are
 * never overwritten.
 */
export async function exportThreads(threads: ReadableThreads, owner: Owner, dir: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  let [count, messages] = [0, 0];
  // Lists all ids first, because a thread that changes during the export moves in the list.
  for (const { id } of await listed(threads, owner, { children: true })) {
    const written = await exportWhole(threads, { owner, id }, dir);
    if (written === undefined) continue;
    count++;
    messages += written;
  }
  return t().threads.exported(count, messages, dir);
}

/** The maximum number of attempts. A thread that loses messages during every attempt is in use and cannot be exported. */
const MAX_ATTEMPTS = 5;

/** Works like `exportThread`, but starts over if the thread loses messages during the export. */
async function exportWhole(
  threads: ReadableThreads,
  place: { owner: Owner; id: string },
  dir: string,
): Promise<number | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await exportThread(threads, place, dir);
    } catch (error) {
      if (!hasCode(error, "not_found") || attempt === MAX_ATTEMPTS) throw error;
      await rm(join(dir, place.id), { recursive: true });
    }
  }
}

async function listed(
  threads: ReadableThreads,
  owner: Owner,
  which: { children: true } | { parent: string },
): Promise<Pick<Thread, "id">[]> {
  const found: Pick<Thread, "id">[] = [];
  let cursor: string | undefined;
  do {
    const page = await threads.list(owner, { limit: THREADS_A_PAGE, ...which, ...omitUndefined({ cursor }) });
    found.push(...page.items.map(({ id }) => ({ id })));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return found;
}

/**
 * Returns the number of messages, or `undefined` if the thread was deleted. Writes `metadata.json` last, so its
 * presence marks a complete export. Throws `not_found` if messages are deleted during the export.
 */
async function exportThread(
  threads: ReadableThreads,
  { owner, id }: { owner: Owner; id: string },
  dir: string,
): Promise<number | undefined> {
  const thread = await threads.get(owner, id);
  if (!thread) return undefined;
  await makeFolder(join(dir, id));
  let last: string | undefined;
  let count = 0;
  await using history = await create(historyFile(dir, id));
  for await (const messages of pages(threads, owner, id)) {
    await history.appendFile(messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
    count += messages.length;
    last = messages.findLast((message) => message.role === "assistant")?.model ?? last;
  }
  const [state, children] = await Promise.all([
    threads.state(owner, id),
    listed(threads, owner, { parent: id }),
  ]);
  await using file = await create(metadataFile(dir, id));
  const about = aboutOf(thread, { state, model: last, children: children.map((child) => child.id) });
  await file.appendFile(`${JSON.stringify(about, undefined, 2)}\n`);
  return count;
}

async function* pages(
  threads: ReadableThreads,
  owner: Owner,
  id: string,
): AsyncGenerator<Message[], void, void> {
  let after: string | undefined;
  for (;;) {
    const page = await threads.messages(owner, id, { limit: MESSAGES_A_PAGE, ...omitUndefined({ after }) });
    after = page.at(-1)?.id;
    if (after === undefined) return;
    yield page;
  }
}

interface ThreadFacts {
  readonly state: Record<string, unknown>;
  readonly model: string | undefined;
  readonly children: string[];
}

function aboutOf(thread: Thread, { state, model, children }: ThreadFacts): ThreadFile {
  const { id, agent, title, metadata, parent, created_at, updated_at } = thread;
  const [, provider, name] = /^([^:]*):(.*)$/s.exec(model ?? "") ?? [];
  return {
    session_id: id,
    metadata,
    parent_run_id: parent?.run_id ?? "",
    background: parent?.background ?? false,
    child_session_ids: children,
    created_at,
    updated_at,
    state: carried(state),
    ...omitUndefined({ agent_type: agent, title, provider, model: name }),
    ...omitUndefined({ parent_session_id: parent?.thread_id, parent_tool_use_id: parent?.call_id }),
    ...omitUndefined({ replaced_message_id: parent?.replaced }),
  };
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    throw new AppError("already_exists", t().threads.folderExists(path));
  });
}

/** Only the file's owner may read it. */
const create = (path: string): Promise<FileHandle> => open(path, "wx", 0o600);
