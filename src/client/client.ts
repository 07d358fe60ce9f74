// The client that front ends import: starts runs and follows them through lost connections. Needs `fetch`.

import type { StreamEvent } from "../core/event.ts";
import type { Answer, Interrupt } from "../core/interrupt.ts";
import type { RunRecord } from "../core/stores.ts";
import { frames } from "./frames.ts";

export type { StreamEvent } from "../core/event.ts";
export type { Answer, Interrupt } from "../core/interrupt.ts";
export type { Message } from "../core/message.ts";
export type { RunRecord, Thread } from "../core/stores.ts";

const MAX_ATTEMPTS = 8;
const LONGEST_PAUSE_MS = 5_000;

export interface ClientOptions {
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: typeof fetch;
}

/** As `POST /threads/:id/runs` takes it. */
export interface RunOptions {
  readonly input?: string;
  readonly messages?: readonly { role: "user" | "system"; content: string }[];
  readonly agent?: string;
  readonly model?: string;
  readonly on_busy?: "reject" | "enqueue" | "interrupt";
}

/** What the server refused, with its code. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, problem: { code?: string; detail?: string }) {
    super(problem.detail ?? `HTTP ${status}`);
    this.name = "ProblemError";
    this.status = status;
    this.code = problem.code ?? "unknown";
  }
}

export function createClient(options: ClientOptions) {
  const send = options.fetch ?? fetch;
  const base = options.baseUrl.replace(/\/+$/, "");

  const request = async (path: string, init: RequestInit): Promise<Response> => {
    const headers = { ...options.headers, ...(init.headers as Record<string, string> | undefined) };
    const response = await send(base + path, { ...init, headers });
    if (response.ok) return response;
    const problem = (await response.json().catch(() => ({}))) as { code?: string; detail?: string };
    throw new ProblemError(response.status, problem);
  };
  const post = (path: string, body: unknown, init: RequestInit = {}) =>
    request(path, {
      ...init,
      method: "POST",
      body: JSON.stringify(body),
      headers: {
        ...(init.headers as Record<string, string> | undefined),
        "content-type": "application/json",
      },
    });

  /** A request that starts a run is repeated, with the same key, until it was answered; then the run is followed. */
  async function* follow(
    path: string,
    body: unknown,
    signal?: AbortSignal,
  ): AsyncGenerator<StreamEvent, void, void> {
    const init = { headers: { "idempotency-key": crypto.randomUUID() }, ...(signal ? { signal } : {}) };
    let cursor: string | undefined;
    let events = path;
    for (let attempt = 0; ; attempt++) {
      try {
        const response = await (cursor === undefined
          ? post(path, body, init)
          : request(events, { ...init, headers: { "last-event-id": cursor } }));
        events = response.headers.get("location") ?? events;
        if (response.status === 204 || !response.body) return;
        for await (const frame of frames(response.body)) {
          if (frame.id === undefined) continue;
          cursor = frame.id;
          attempt = 0;
          const event = JSON.parse(frame.data) as StreamEvent;
          yield event;
          if (event.event === "done" || event.event === "error") return;
        }
      } catch (error) {
        if (signal?.aborted || isFinal(error) || attempt >= MAX_ATTEMPTS) throw error;
      }
      if (attempt >= MAX_ATTEMPTS) throw new Error("The server ends the stream again and again.");
      await pause(attempt);
    }
  }

  return {
    /**
     * Starts a run and yields its events to the last. A lost connection is taken up where it broke: nothing
     * is missed, nothing comes twice. Aborting `signal` stops following, not the run. Throws `ProblemError`.
     */
    run(threadId: string, run: RunOptions, signal?: AbortSignal): AsyncGenerator<StreamEvent, void, void> {
      return follow(pathOf(threadId), run, signal);
    },

    /**
     * Answers what an interrupted run asked, and yields the events of the run that goes on. As `run` otherwise. Throws
     * `interrupt_closed` for what somebody else has answered.
     */
    resume(
      threadId: string,
      runId: string,
      answers: readonly Answer[],
      signal?: AbortSignal,
    ): AsyncGenerator<StreamEvent, void, void> {
      return follow(`${pathOf(threadId)}/${encodeURIComponent(runId)}/resume`, { answers }, signal);
    },

    /** What waits for an answer on a thread; nothing on one that there is not. */
    async interrupts(threadId: string): Promise<Interrupt[]> {
      try {
        const response = await request(`/threads/${encodeURIComponent(threadId)}/interrupts`, {});
        return ((await response.json()) as { items: Interrupt[] }).items;
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return [];
        throw error;
      }
    },

    /** Ends a run: now, or after its current step. */
    async stop(threadId: string, runId: string, mode: "cancel" | "interrupt" = "cancel"): Promise<RunRecord> {
      const response = await post(`${pathOf(threadId)}/${encodeURIComponent(runId)}/cancel`, { mode });
      return (await response.json()) as RunRecord;
    },
  };
}
export type Client = ReturnType<typeof createClient>;

const pathOf = (threadId: string) => `/threads/${encodeURIComponent(threadId)}/runs`;

/** 503 passes: a server that restarts, or another replica. */
const isFinal = (error: unknown) => error instanceof ProblemError && error.status !== 503;

function pause(attempt: number): Promise<void> {
  const longest = Math.min(LONGEST_PAUSE_MS, 100 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest));
}
