// What the engine tells of our containers, as it happens.

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Engine } from "./engine.ts";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;

const Line = z.object({ Action: z.string(), Actor: z.object({ ID: z.string() }) });

/** Calls back until `signal` aborts. What happens while the engine is away is not told. */
export async function watch(
  engine: Engine,
  label: string,
  onEvent: (containerId: string, action: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    try {
      const stream = await engine.events(label, signal);
      for await (const line of linesOf(stream, signal)) {
        pause = FIRST_PAUSE_MS;
        const event = Line.safeParse(JSON.parse(line)).data;
        if (event) onEvent(event.Actor.ID, event.Action);
      }
    } catch {
      // The engine is away, or the stream broke; both look the same from here on.
    }
    await sleep(pause, undefined, { signal }).catch(() => {});
  }
}

async function* linesOf(stream: Readable, signal: AbortSignal): AsyncGenerator<string> {
  const end = () => stream.destroy();
  signal.addEventListener("abort", end, { once: true });
  stream.on("error", () => {});
  try {
    yield* createInterface({ input: stream });
  } finally {
    signal.removeEventListener("abort", end);
    stream.destroy();
  }
}
