// What users do: they start runs on a handful of threads, through random replicas, and follow them to
// their ends.

import { meddle } from "./meddling.ts";
import { drawPlan } from "./plan.ts";
import type { Random } from "./random.ts";
import { start } from "./starting.ts";
import { pause, type World } from "./world.ts";

/** Those in use at a time; each one is left alone after so many messages. */
const THREADS = 10;
const MESSAGES = 12;
const PAUSE_MS = 300;

/** The share of threads with a follower. */
const FOLLOWED = 0.5;

/** Resolves when all that was begun has come to its end, or nothing is waited for any more. */
export async function work(users: number, random: Random, world: World): Promise<void> {
  const nextThread = threadPool(random.branch("threads"), world);
  await Promise.all(
    Array.from({ length: users }, (_, number) => live(nextThread, random.branch(`user ${number}`), world)),
  );
}

async function live(nextThread: () => string, random: Random, world: World): Promise<void> {
  const { journal, readers, ending } = world;
  const others: Promise<void>[] = [];
  while (!ending.aborted) {
    const plan = drawPlan(journal.newPlanId(), random);
    const run = await start(plan, nextThread(), random, world);
    if (run) {
      others.push(meddle(run, random, world));
      const first = run.first ? { first: run.first } : {};
      await readers.follow(
        { run: run.id, thread: run.thread, ...first },
        random.branch(`reader of ${plan.id}`),
      );
    }
    await pause(random, PAUSE_MS, ending);
  }
  await Promise.all(others);
}

function threadPool(random: Random, { journal, readers }: World): () => string {
  const pool: { readonly name: string; left: number }[] = [];
  return () => {
    if (pool.length < THREADS) {
      const name = `t${journal.threads.size + 1}`;
      journal.threads.add(name);
      pool.push({ name, left: MESSAGES });
      if (random.chance(FOLLOWED)) void readers.followThread(name, random.branch(`follower of ${name}`));
    }
    const thread = random.pick(pool);
    if (--thread.left === 0) pool.splice(pool.indexOf(thread), 1);
    return thread.name;
  };
}
