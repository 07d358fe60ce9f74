// Starts a run as a persistent client does: with a key, repeatedly, each time on another replica, until it gets a
// definite response.

import { z } from "zod";
import { RunRecord } from "../../src/agent/core/records.ts";
import { FinishedRun } from "../../src/server/http/schemas.ts";
import { answerOf, codeOf, json, type Opened, open } from "./http.ts";
import type { Sent } from "./journal.ts";
import { type Plan, textOf } from "./plan.ts";
import type { Random } from "./random.ts";
import { pause, type World } from "./world.ts";

const ANSWER_MS = 5_000;
/** For an answer that comes with the run's end. It is asked for again after that. */
const WHOLE_MS = 10_000;
const PAUSE_MS = 200;

export const AGENTS = ["one", "two"] as const;
/** How the answer is to come. */
const WAYS = ["stream", "stream", "stream", "background", "whole"] as const;
const WHEN_BUSY = ["reject", "enqueue", "enqueue", "interrupt"] as const;

const Busy = z.object({ details: z.object({ run_id: z.string() }) });

export interface Started {
  readonly id: string;
  readonly thread: string;
  readonly key: string;
  /** The answer, if it is the run's own stream. */
  readonly first?: Opened;
}

/** Undefined when the server refuses it, or no response comes in time. */
export async function start(
  plan: Plan,
  thread: string,
  random: Random,
  world: World,
): Promise<Started | undefined> {
  const { journal } = world;
  const sent: Sent = { text: textOf(plan), thread, fate: "unknown" };
  journal.sent.push(sent);
  const way = random.pick(WAYS);
  const key = `key-${plan.id}`;
  const body = {
    input: sent.text,
    agent: random.pick(AGENTS),
    on_busy: random.pick(WHEN_BUSY),
    ...(way === "background" ? { background: true } : {}),
  };
  const accept = way === "whole" ? { accept: "application/json" } : {};
  const request = json(body, { "idempotency-key": key, ...accept });
  for (let isCertain = true; !world.over.aborted; isCertain = false) {
    const url = `${random.pick(world.replicas.urls)}/threads/${thread}/runs`;
    const opened = await open(url, request, way === "whole" ? WHOLE_MS : ANSWER_MS);
    const id = "lost" in opened ? "again" : await idOf(opened, sent, isCertain, world);
    if (id === undefined) return undefined;
    if (id !== "again") {
      journal.count("runs accepted");
      Object.assign(sent, { fate: "accepted", run: id });
      return { id, thread, key, ...("lost" in opened || way !== "stream" ? {} : { first: opened }) };
    }
    journal.count("starts repeated");
    await pause(random, PAUSE_MS, world.over);
  }
  return undefined;
}

/** The run's id; undefined when the server does not want it. */
async function idOf(
  { response }: Opened,
  sent: Sent,
  isCertain: boolean,
  { journal }: World,
): Promise<string | "again" | undefined> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (response.status === 200 && isStream) return runIn(response.headers);
  const answer = await answerOf(response).catch(() => undefined);
  if (!answer) return "again";
  switch (answer.status) {
    case 503:
      return "again";
    case 200: {
      const { id, status, messages } = FinishedRun.parse(answer.body);
      journal.told.push({ run: id, status, messages: messages.map((message) => message.id) });
      return id;
    }
    case 202:
      return RunRecord.parse(answer.body).id;
    case 409:
    case 429: {
      if (isCertain) sent.fate = "refused";
      const busyWith = Busy.safeParse(answer.body).data?.details.run_id;
      if (busyWith !== undefined) sent.busyWith = busyWith;
      journal.count(`starts refused: ${codeOf(answer)}`);
      return undefined;
    }
    default:
      journal.fault(`a start on ${sent.thread}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return undefined;
  }
}

/** The run that a stream is about. */
export function runIn(headers: Headers): string {
  return /\/runs\/([^/]+)\/events$/.exec(headers.get("location") ?? "")?.[1] ?? "";
}
