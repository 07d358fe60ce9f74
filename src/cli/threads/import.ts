// `skein threads import`: makes threads out of what `export` has written, for one user. All files are read and checked
// before the first thread is made; then they are read again, one thread at a time, so that no more is held.

import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import type { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import { Message } from "../../core/message.ts";
import type { Parent } from "../../core/records.ts";
import type { ThreadStore } from "../../core/stores.ts";
import { check, sentence } from "../../lib/check.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { readText } from "../../lib/read-text.ts";
import { carried, historyFile, metadataFile, ThreadFile } from "./files.ts";

const MAX_METADATA_BYTES = 64 * 1024 * 1024;
/** A thread is held whole by whoever works on it. */
const MAX_HISTORY_BYTES = 512 * 1024 * 1024;
const MAX_PROBLEMS = 20;

/** What was made, in words. Throws `invalid_request` with every problem, one a line; then nothing was made. */
export async function importThreads(threads: ThreadStore, owner: Owner, dir: string): Promise<string> {
  const places = await checkAll(threads, owner, dir);
  let messages = 0;
  // The one that changed last comes last, so that they are listed in the order in which they were.
  for (const { id } of places.toSorted((a, b) => (a.updated_at < b.updated_at ? -1 : 1))) {
    const { agent_type: agent, title, metadata, ...about } = await readAbout(dir, id);
    const history: Message[] = [];
    for await (const message of readHistory(dir, id)) history.push(message);
    await threads.create(owner, {
      ...{ id, metadata, messages: history, state: carried(about.state) },
      ...omitUndefined({ agent, title, parent: parentOf(about) }),
    });
    messages += history.length;
  }
  return `Imported ${places.length} threads with ${messages} messages from ${dir}.`;
}

interface Place {
  readonly id: string;
  readonly updated_at: string;
}

async function checkAll(threads: ThreadStore, owner: Owner, dir: string): Promise<Place[]> {
  const places: Place[] = [];
  const problems: string[] = [];
  for (const id of await foldersOf(dir)) {
    try {
      const { updated_at = "" } = await readAbout(dir, id);
      for await (const _ of readHistory(dir, id));
      if (await threads.get(owner, id))
        throw broken(`There is a thread \`${id}\` already. Nothing is written over.`);
      places.push({ id, updated_at });
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "invalid_request") throw error;
      problems.push(error.message);
    }
    if (problems.length >= MAX_PROBLEMS) break;
  }
  if (problems.length > 0) throw broken(problems.join("\n"));
  return places;
}

const broken = (message: string) => new AppError("invalid_request", message);

async function foldersOf(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => {
    throw broken(`${dir} is no folder that can be read.`);
  });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

async function readAbout(dir: string, id: string): Promise<ThreadFile> {
  const file = metadataFile(dir, id);
  const read = await readText(file, MAX_METADATA_BYTES);
  if ("fault" in read) throw broken(`${file} ${read.fault}: the export of this thread is not whole.`);
  const about = parsed(ThreadFile, read.text, file);
  if (about.session_id === id) return about;
  throw broken(`${file}: session_id must be the name of the folder, \`${id}\`.`);
}

/** One line at a time. */
async function* readHistory(dir: string, id: string): AsyncGenerator<Message, void, void> {
  const file = historyFile(dir, id);
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw broken(`${file} does not exist: the export of this thread is not whole.`);
  if (found.size > MAX_HISTORY_BYTES)
    throw broken(`${file} is larger than ${MAX_HISTORY_BYTES / 1024 / 1024} MiB.`);
  const ids = new Set<string>();
  let line = 0;
  for await (const text of linesOf(file)) {
    line++;
    if (text.trim() === "") continue;
    const message = parsed(Message, text, `${file}:${line}`);
    if (ids.has(message.id)) throw broken(`${file}:${line}: message \`${message.id}\` came before.`);
    ids.add(message.id);
    yield message;
  }
}

/** They end where JSON has no other meaning for it: not at U+2028, which a message may hold. */
async function* linesOf(file: string): AsyncGenerator<string, void, void> {
  let line = "";
  for await (const chunk of createReadStream(file, { encoding: "utf8" })) {
    const [first = "", ...more] = String(chunk).split("\n");
    line += first;
    for (const next of more) {
      yield line;
      line = next;
    }
  }
  yield line;
}

function parsed<S extends z.ZodType>(schema: S, text: string, place: string): z.output<S> {
  const checked = check(schema, jsonOf(text, place));
  if ("value" in checked) return checked.value;
  const [first] = checked.faults;
  throw broken(`${place}: ${first ? sentence(first) : "refused"}`);
}

function jsonOf(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw broken(`${place}: must be JSON`);
  }
}

function parentOf(
  about: Pick<ThreadFile, "parent_run_id" | "background" | "parent_session_id" | "parent_tool_use_id">,
) {
  const {
    parent_session_id: thread_id,
    parent_tool_use_id: call_id,
    parent_run_id: run_id,
    background,
  } = about;
  if (thread_id === undefined || call_id === undefined) return undefined;
  return { thread_id, run_id, call_id, background } satisfies Parent;
}
