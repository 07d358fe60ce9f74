// `skein threads import`: creates a user's threads from exported files. It validates all files before it creates the
// first thread. Then it reads them again, one thread at a time, to limit memory use.

import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import type { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { Message } from "../../../agent/core/message.ts";
import type { Parent } from "../../../agent/core/records.ts";
import type { ThreadStore } from "../../../agent/core/stores.ts";
import { check, sentence } from "../../../lib/check.ts";
import { jsonSize } from "../../../lib/json.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { readText } from "../../../lib/read-text.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { t } from "../texts.ts";
import { carried, historyFile, metadataFile, ThreadFile } from "./files.ts";

const MAX_METADATA_BYTES = 64 * 1024 * 1024;
/** The maximum size of a thread's messages. A run keeps the whole thread in memory. */
const MAX_HISTORY_BYTES = 512 * 1024 * 1024;
/** The maximum length of one message. */
const MAX_LINE_CHARS = 64 * 1024 * 1024;
/** The maximum nesting of lists and maps. Deeper nesting could overflow the stack of recursive code. */
const MAX_DEPTH = 500;
const MAX_PROBLEMS = 20;

export interface ImportOptions {
  /** Skips existing threads, so an interrupted import can continue. By default, an existing thread is an error. */
  readonly resumes?: boolean | undefined;
}

/**
 * Imports the threads and returns a summary. Throws `invalid_request` with every problem, one per line, before it creates
 * anything.
 */
export async function importThreads(
  threads: ThreadStore,
  owner: Owner,
  dir: string,
  { resumes = false }: ImportOptions = {},
): Promise<string> {
  const { all, passedOver } = await checkAll(threads, owner, dir, resumes);
  let messages = 0;
  // Starts with the least recently changed thread, which preserves the order of the list.
  for (const { id } of all.toSorted((a, b) => (a.updated_at < b.updated_at ? -1 : 1))) {
    const { agent_type: agent, title, metadata, ...about } = await readAbout(dir, id);
    const history: Message[] = [];
    for await (const message of readHistory(dir, id)) history.push(message);
    await threads.create(owner, {
      id,
      metadata,
      messages: history,
      state: carried(about.state),
      ...omitUndefined({ agent, title, parent: parentOf(about) }),
    });
    messages += history.length;
  }
  const rest = passedOver > 0 ? ` ${t().threads.skipped(passedOver)}` : "";
  return t().threads.imported(all.length, messages, dir) + rest;
}

interface CheckedThread {
  readonly id: string;
  readonly updated_at: string;
}

async function checkAll(
  threads: ThreadStore,
  owner: Owner,
  dir: string,
  resumes: boolean,
): Promise<{ readonly all: CheckedThread[]; readonly passedOver: number }> {
  const all: CheckedThread[] = [];
  let passedOver = 0;
  const problems: string[] = [];
  for (const id of await foldersOf(dir)) {
    try {
      const { updated_at = "" } = await readAbout(dir, id);
      for await (const _ of readHistory(dir, id));
      if (!(await threads.get(owner, id))) all.push({ id, updated_at });
      else if (resumes) passedOver++;
      else throw broken(t().threads.exists(id));
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "invalid_request") throw error;
      problems.push(error.message);
    }
    if (problems.length >= MAX_PROBLEMS) break;
  }
  if (problems.length > 0) throw broken(problems.join("\n"));
  return { all, passedOver };
}

const broken = (message: string) => new AppError("invalid_request", message);

async function foldersOf(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => {
    throw broken(t().threads.noFolder(dir));
  });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

async function readAbout(dir: string, id: string): Promise<ThreadFile> {
  const file = metadataFile(dir, id);
  const read = await readText(file, MAX_METADATA_BYTES);
  if ("fault" in read) throw broken(t().threads.incomplete(file, read.fault));
  const about = parsed(ThreadFile, read.text, file);
  if (about.session_id === id) return about;
  throw broken(t().threads.wrongId(file, id));
}

/** Yields the messages, reading one line at a time. */
async function* readHistory(dir: string, id: string): AsyncGenerator<Message, void, void> {
  const file = historyFile(dir, id);
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw broken(t().threads.incomplete(file, t().threads.missing));
  if (found.size > MAX_HISTORY_BYTES)
    throw broken(t().threads.tooLarge(file, MAX_HISTORY_BYTES / 1024 / 1024));
  const ids = new Set<string>();
  let line = 0;
  for await (const text of linesOf(file)) {
    line++;
    if (text.trim() === "") continue;
    const message = parsed(Message, text, `${file}:${line}`);
    if (ids.has(message.id)) throw broken(t().threads.duplicate(`${file}:${line}`, message.id));
    ids.add(message.id);
    yield message;
  }
}

/**
 * Splits only at LF. `readline` would also split at U+2028, which a message can contain. Throws `invalid_request` if a
 * line is too long.
 */
async function* linesOf(file: string): AsyncGenerator<string, void, void> {
  let line = "";
  let number = 1;
  for await (const chunk of createReadStream(file, { encoding: "utf8" })) {
    const [first = "", ...more] = String(chunk).split("\n");
    line += first;
    if (line.length > MAX_LINE_CHARS)
      throw broken(t().threads.longLine(`${file}:${number}`, MAX_LINE_CHARS / 1024 / 1024));
    for (const next of more) {
      yield line;
      line = next;
      number++;
    }
  }
  yield line;
}

function parsed<S extends z.ZodType>(schema: S, text: string, place: string): z.output<S> {
  const checked = check(schema, jsonOf(text, place));
  if ("value" in checked) return checked.value;
  const [first] = checked.faults;
  throw broken(`${place}: ${first ? sentence(first) : t().threads.refused}`);
}

function jsonOf(text: string, place: string): unknown {
  const { depth } = jsonSize(Buffer.from(text));
  if (depth > MAX_DEPTH) throw broken(t().threads.tooDeep(place, MAX_DEPTH, depth));
  try {
    return JSON.parse(text);
  } catch {
    throw broken(t().threads.noJson(place));
  }
}

function parentOf(about: Omit<ThreadFile, "agent_type" | "title" | "metadata">) {
  const { parent_session_id: thread_id, parent_tool_use_id: call_id } = about;
  if (thread_id === undefined || call_id === undefined) return undefined;
  const { parent_run_id: run_id, background, replaced_message_id: replaced } = about;
  return { thread_id, call_id, run_id, background, ...omitUndefined({ replaced }) } satisfies Parent;
}
