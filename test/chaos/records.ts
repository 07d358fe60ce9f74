// What the servers have written down, read back through their own front door once everything is over.

import { z } from "zod";
import { Message } from "../../src/agent/core/message.ts";
import { isSettled, RunRecord, Thread } from "../../src/agent/core/records.ts";
import { frames } from "../../src/client/frames.ts";
import { StreamEvent } from "../../src/protocol/event.ts";
import { pageOf } from "../../src/server/http/schemas.ts";
import type { Line } from "./journal.ts";

export interface RunOnRecord {
  readonly run: RunRecord;
  /** The ids as a reader gets them. */
  readonly ids: readonly string[];
  readonly lines: readonly Line[];
  readonly events: readonly StreamEvent[];
}

export interface ThreadOnRecord {
  readonly thread: Thread;
  readonly messages: readonly Message[];
  /** Newest first. */
  readonly runs: readonly RunOnRecord[];
}

const PAGE = 100;
const Messages = z.object({ items: z.array(Message) });

/** Undefined when there is no such thread. Throws for anything else that is not as documented. */
export async function readThread(base: string, id: string): Promise<ThreadOnRecord | undefined> {
  const url = `${base}/threads/${id}`;
  const thread = await fetch(url);
  if (thread.status === 404) return undefined;
  const runs: RunOnRecord[] = [];
  for (const run of await runsOf(url)) runs.push(await readRun(`${url}/runs/${run.id}/events`, run));
  return {
    thread: Thread.parse(await thread.json()),
    messages: Messages.parse(await get(`${url}/messages?limit=1000`)).items,
    runs,
  };
}

async function runsOf(url: string): Promise<RunRecord[]> {
  const runs: RunRecord[] = [];
  for (let cursor = ""; ; ) {
    const page = pageOf(RunRecord).parse(await get(`${url}/runs?limit=${PAGE}${cursor}`));
    runs.push(...page.items);
    if (page.next_cursor === undefined) return runs;
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

async function readRun(url: string, run: RunRecord): Promise<RunOnRecord> {
  const [ids, lines, events]: [string[], Line[], StreamEvent[]] = [[], [], []];
  if (!isSettled(run.status)) return { run, ids, lines, events };
  const { body } = await fetch(url);
  if (!body) throw new Error(`${url} has nothing to read.`);
  for await (const { id = "", event, data } of frames(body)) {
    ids.push(id);
    lines.push({ epoch: Number(/:(\d+)-\d+$/.exec(id)?.[1]), event, data });
    events.push(StreamEvent.parse(JSON.parse(data)));
  }
  return { run, ids, lines, events };
}

async function get(url: string): Promise<unknown> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}
