// The parent's side of the probe, for a server that was started with `PROBED` as Node's arguments.

import { once } from "node:events";
import { join } from "node:path";
import type { Server } from "./children.ts";
import type { Memory, Profile, Turn } from "./probe.ts";

export const PROBED = ["--expose-gc", "--import", join(import.meta.dirname, "probe.ts")];

const ANSWER_MS = 60_000;

/** Returns the memory in use after a full collection. */
export const memoryOf = (server: Server) => ask<Memory>(server, "memory");

/** Starts to record the server's CPU time. */
export const startProfile = (server: Server) => ask<object>(server, "profile");
export const stopProfile = (server: Server) => ask<Profile>(server, "profiled");

/** Starts to look for the longest tick of the server's event loop. */
export const startTurns = (server: Server) => ask<object>(server, "turns");
export const longestTurn = (server: Server) => ask<Turn>(server, "turned");

/** The probe answers each question with one message of the matching type. */
async function ask<T>({ process }: Server, question: string): Promise<T> {
  const answered = once(process, "message", { signal: AbortSignal.timeout(ANSWER_MS) });
  process.send(question);
  const [answer] = (await answered) as [T];
  return answer;
}
