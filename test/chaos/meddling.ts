// What else may happen to a run while it works: it is steered, stopped, asked for a second time and watched by
// others, each through a replica of its own.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { isSettled, RunRecord } from "../../src/agent/core/records.ts";
import { ask, codeOf, json, open } from "./http.ts";
import type { Sent } from "./journal.ts";
import type { Random } from "./random.ts";
import { runIn, type Started } from "./starting.ts";
import { pause, type World } from "./world.ts";

const ANSWER_MS = 8_000;

type Meddler = (run: Started, random: Random, world: World) => Promise<void>;

/** How likely each of them is. */
const MEDDLERS: readonly (readonly [number, Meddler])[] = [
  [0.4, steer],
  [0.2, stop],
  [0.25, repeat],
  [0.6, watch],
  [0.3, watch],
];

export async function meddle(run: Started, random: Random, world: World): Promise<void> {
  await Promise.all(
    MEDDLERS.map(async ([probability, meddler], index) => {
      const own = random.branch(`meddler ${index} of ${run.key}`);
      if (!own.chance(probability)) return;
      await pause(own, own.pick([50, 300, 3_000]), world.ending);
      await meddler(run, own, world);
    }),
  );
}

async function steer({ id, thread, key }: Started, random: Random, world: World): Promise<void> {
  const { journal } = world;
  const sent: Sent = { text: `steering of ${key}, please`, thread, fate: "unknown", run: id };
  journal.sent.push(sent);
  const url = `${random.pick(world.replicas.urls)}/threads/${thread}/runs/${id}/messages`;
  const answer = await ask(url, json({ input: sent.text }), ANSWER_MS);
  if ("lost" in answer || answer.status === 503) return;
  journal.count(`steering: ${answer.status === 202 ? "accepted" : codeOf(answer)}`);
  if (answer.status === 202) {
    const { message_id } = z.object({ message_id: z.string() }).parse(answer.body);
    Object.assign(sent, { fate: "accepted", message: message_id });
  } else if (answer.status === 409 || answer.status === 429) sent.fate = "refused";
  else journal.fault(`steering of ${id}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

async function stop({ id, thread }: Started, random: Random, world: World): Promise<void> {
  const { journal } = world;
  const mode = random.pick(["cancel", "cancel", "interrupt"] as const);
  const url = `${random.pick(world.replicas.urls)}/threads/${thread}/runs/${id}/cancel`;
  const answer = await ask(url, json({ mode }), ANSWER_MS);
  if ("lost" in answer || answer.status === 503) return;
  journal.count(`${mode}s: ${answer.status < 300 ? "accepted" : codeOf(answer)}`);
  if (answer.status === 200 || answer.status === 202) {
    const { status } = RunRecord.parse(answer.body);
    journal.stops.push({ run: id, mode, at: Date.now() });
    if (isSettled(status) !== (answer.status === 200))
      journal.fault(`a stop of ${id} was answered ${answer.status}, with the status ${status}`);
    if (answer.status === 200) journal.told.push({ run: id, status });
  } else if (answer.status !== 409)
    journal.fault(`a stop of ${id}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** A client that did not get its answer says it again: with its key, or with the id of the last event it got. */
async function repeat({ id, thread, key }: Started, random: Random, world: World): Promise<void> {
  const { journal } = world;
  const seq = random.int(1, 5);
  const line = random.chance(0.5) ? journal.seen(id)[seq - 1] : undefined;
  const header: Record<string, string> = line
    ? { "last-event-id": `${id}:${line.epoch}-${seq}` }
    : { "idempotency-key": key };
  const url = `${random.pick(world.replicas.urls)}/threads/${thread}/runs`;
  const opened = await open(url, json({ input: "The same again.", on_busy: "enqueue" }, header), ANSWER_MS);
  if ("lost" in opened) return;
  const { response, leave } = opened;
  try {
    if (response.status === 503) return;
    journal.count(`repeats with ${line ? "an event's id" : "the key"}`);
    const again = runIn(response.headers);
    if (response.status >= 300 || again !== id)
      journal.fault(
        `a repeat of ${id} with ${JSON.stringify(header)}: ${response.status} ${again} ${await bodyOf(response)}`,
      );
    await sleep(random.int(0, 100));
  } finally {
    leave.abort();
  }
}

const bodyOf = (response: Response) => (response.status < 300 ? "" : response.text().catch(() => ""));

/** Another viewer follows from the first event. */
async function watch({ id, thread }: Started, random: Random, world: World): Promise<void> {
  await world.readers.follow({ run: id, thread }, random);
}
