// The parent's side of holder.ts.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { BackendConfig } from "../../src/agent/core/backend.ts";
import { PROBED } from "../probing.ts";
import type { HolderOptions } from "./holder.ts";
import type { Stage } from "./stage.ts";

const PROGRAM = fileURLToPath(import.meta.resolve("./holder.ts"));
const ANSWER_MS = 120_000;

/** `T` is the type of the answer. */
export type Ask = <T>(question: string | object) => Promise<T>;

/** Runs `work` with a server that keeps sandboxes. Stops the sandboxes and the server afterwards. */
export async function withHolder<T>(
  { surroundings, signal }: Stage,
  config: BackendConfig,
  work: (ask: Ask) => Promise<T>,
): Promise<T> {
  const options: HolderOptions = { ...surroundings, config };
  const holder = fork(PROGRAM, [JSON.stringify(options)], {
    execArgv: PROBED,
  });
  const ended = once(holder, "exit");
  const early = ended.then(() => Promise.reject(new Error("The server that holds sandboxes ended.")));
  early.catch(() => {}); // not awaited between questions
  const ask = async <T>(question: string | object): Promise<T> => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    const answered = once(holder, "message", { signal: limit });
    holder.send(question);
    // A single message of the type that matches the question.
    const [answer] = (await Promise.race([answered, early])) as [T];
    return answer;
  };
  try {
    return await work(ask);
  } finally {
    if (holder.connected) holder.disconnect();
    await ended;
  }
}
