// The client for recording logs, which drives one thread over HTTP.

import { setTimeout as sleep } from "node:timers/promises";
import type { StreamEvent } from "../../src/protocol/event.ts";
import type { RecordingServer, ToolCalls } from "./servers.ts";

interface Following {
  /** Returns the first event that `fits` accepts. */
  until(fits: (event: StreamEvent) => boolean): Promise<StreamEvent>;
  readonly ended: Promise<void>;
}

interface RunNow {
  readonly id: string;
  readonly status: string;
}

export interface Log {
  readonly run: RunNow;
  readonly events: readonly StreamEvent[];
}

const POLL_MS = 20;
const PATIENCE_MS = 60_000;

export function clientOf(server: RecordingServer, tools: ToolCalls, { thread = "", agent = "" }) {
  const send = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${server.url()}/threads/${thread}${path}`, {
      method,
      headers: { "content-type": "application/json", accept: "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${thread}: ${method} ${path} answers ${response.status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  const runs = async () => ((await send("GET", "/runs?limit=100")) as { items: RunNow[] }).items;
  const newest = async () => (await runs())[0]?.id ?? "";

  /** Waits until the most recent run of the thread has ended. */
  const settled = async (atLeast = 1) => {
    const until = Date.now() + PATIENCE_MS;
    while (Date.now() < until) {
      const all = await runs().catch(() => []);
      if (all.length >= atLeast && all.every(({ status }) => status !== "running" && status !== "queued"))
        return;
      await sleep(POLL_MS);
    }
    throw new Error(`${thread}: no run ended within ${PATIENCE_MS} ms.`);
  };

  async function eventsOf(run: string, see: (event: StreamEvent) => void): Promise<void> {
    const response = await fetch(`${server.url()}/threads/${thread}/runs/${run}/events`);
    let text = "";
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data) see(JSON.parse(data) as StreamEvent);
      }
    }
  }

  return {
    run: (body: object) => send("POST", "/runs", { agent, ...body }),
    async resume(answers: readonly object[], more: object = {}): Promise<void> {
      await send("POST", `/runs/${await newest()}/resume`, { answers, ...more });
    },
    async start(body: object): Promise<Following> {
      await send("POST", "/runs", { agent, ...body, background: true });
      const seen: StreamEvent[] = [];
      const ended = eventsOf(await newest(), (event) => seen.push(event)).catch(() => {});
      return {
        ended,
        async until(fits) {
          for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await sleep(POLL_MS)) {
            const found = seen.find(fits);
            if (found) return found;
          }
          throw new Error(`${thread}: the expected event did not occur.`);
        },
      };
    },
    stop: async (mode: "cancel" | "interrupt") => send("POST", `/runs/${await newest()}/cancel`, { mode }),
    steer: async (input: string) => send("POST", `/runs/${await newest()}/messages`, { input }),
    asked: async () => {
      const { items } = (await send("GET", "/interrupts")) as { items: { id: string }[] };
      return items[0]?.id ?? "";
    },
    called: (tool: string) => tools.next(tool),
    /** Delivers the deferred result and waits until the thread has used it. */
    async deliver(result: unknown): Promise<void> {
      const before = (await runs()).length;
      const { result_url } = await tools.next("freight");
      await fetch(result_url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ result }),
      });
      await settled(before + 1);
    },
    /** Kills the server and starts another one, which takes over the run. */
    async crash(): Promise<void> {
      await server.restart();
      await settled();
    },
    /** Returns all runs of the thread with their events, oldest first. */
    async logs(): Promise<Log[]> {
      await settled();
      const logs: Log[] = [];
      for (const run of (await runs()).toReversed()) {
        const events: StreamEvent[] = [];
        await eventsOf(run.id, (event) => events.push(event));
        logs.push({ run, events });
      }
      return logs;
    },
  };
}
export type Client = ReturnType<typeof clientOf>;
