// Slack's Web API as a server of this process, with the true forms of requests and replies. Messages are kept as people see them.

import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface SlackCall {
  readonly method: string;
  readonly args: Record<string, unknown>;
}

export interface SlackMessage {
  readonly channel: unknown;
  readonly thread_ts: unknown;
  readonly text: string;
  readonly blocks?: unknown;
  /** Whether it can still grow. */
  readonly isStreaming: boolean;
}

/** A reply other than success: `ratelimited` with its pause, or a refusal such as `missing_scope`. */
export type SlackRefuses = (
  call: SlackCall,
) => { readonly error: string; readonly retryAfter?: string } | undefined;

const STARTS = ["chat.startStream", "chat.postMessage"];

/** `refuses` decides on each call. Closed when the test has finished. */
export async function fakeSlack(token: string, refuses: SlackRefuses = () => undefined) {
  const calls: SlackCall[] = [];
  const messages = new Map<string, SlackMessage>();

  function carriedOut({ method, args }: SlackCall): { ok: boolean; error?: string; ts?: string } {
    const text = String(args.markdown_text ?? args.text ?? "");
    if (method === "chat.postEphemeral") return { ok: true };
    const isStart = STARTS.some((start) => start === method);
    const ts = isStart ? `1700000000.${String(messages.size).padStart(6, "0")}` : String(args.ts);
    const old = messages.get(ts);
    if (isStart ? text === "" : !old) return { ok: false, error: isStart ? "no_text" : "message_not_found" };
    const isStream = method.endsWith("Stream");
    if (old && isStream && !old.isStreaming) return { ok: false, error: "message_not_in_streaming_state" };
    messages.set(ts, {
      channel: args.channel,
      thread_ts: old?.thread_ts ?? args.thread_ts,
      text: old && isStream ? old.text + text : text,
      ...(args.blocks ? { blocks: args.blocks } : {}),
      isStreaming: isStream && method !== "chat.stopStream",
    });
    return { ok: true, ts };
  }

  const server = createServer(async (request, response) => {
    const call = { method: (request.url ?? "").replace("/api/", ""), args: await bodyOf(request) };
    const isKnown = request.headers.authorization === `Bearer ${token}`;
    const refusal = isKnown ? refuses(call) : { error: "invalid_auth" };
    calls.push(call);
    const headers = { "content-type": "application/json; charset=utf-8" };
    const isLimited = refusal?.retryAfter !== undefined;
    response.writeHead(isLimited ? 429 : 200, {
      ...headers,
      ...(isLimited ? { "retry-after": refusal.retryAfter } : {}),
    });
    response.end(JSON.stringify(refusal ? { ok: false, error: refusal.error } : carriedOut(call)));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // of a port that is listened on
  return {
    url: `http://127.0.0.1:${port}/api/`,
    calls: (method: string) => calls.filter((call) => call.method === method).map(({ args }) => args),
    messages: () => [...messages.entries()].map(([ts, message]) => ({ ts, ...message })),
  };
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks = await request.toArray();
  return JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
}
