// Sends the requests of the authorization flow, with limits on bytes and time. Only public addresses are allowed,
// unless the operator has named others.

import { messageOf } from "../../../agent/core/errors.ts";
import type { HostList } from "../../../lib/hosts.ts";
import { createPublicFetch, type PublicRequest } from "../../../lib/ssrf-safe-fetch/index.ts";

const MAX_ANSWER_BYTES = 256 * 1024;
/** Time limit for one answer, in milliseconds. */
const ANSWER_MS = 10_000;

export interface FlowAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if the answer is not JSON. */
  readonly json: unknown;
}

export interface FlowRequests {
  /** Throws the reason of `signal`, or an `Error` whose message contains neither the URL nor text from its server. */
  send(url: string, request: Pick<PublicRequest, "method" | "headers" | "body">): Promise<FlowAnswer>;
}

/** `own` is the URL of the MCP server. It may be private, because the operator chose it. */
export function createFlowRequests(own: string, allow: HostList, signal: AbortSignal): FlowRequests {
  const { host } = new URL(own);
  const fetch = createPublicFetch({ allow: (url) => url.host === host || allow(url) });
  return {
    async send(url, { headers, ...request }) {
      const both = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
      await using answer = await fetch(url, {
        ...request,
        headers: { accept: "application/json", "user-agent": "skein", ...headers },
        signal: both,
      });
      const pieces: Uint8Array[] = [];
      for await (const piece of answer.read(MAX_ANSWER_BYTES)) pieces.push(piece);
      return {
        status: answer.status,
        headers: answer.headers,
        json: parsed(Buffer.concat(pieces).toString()),
      };
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the JSON at a URL. Returns undefined if the URL cannot be reached or answers with anything but status 200 and
 * JSON.
 */
export async function jsonAt(requests: FlowRequests, url: string): Promise<unknown> {
  const { status, json } = await requests.send(url, { method: "GET", headers: {} });
  return status === 200 ? json : undefined;
}

/** Completes "… could not be read: …". */
export const reasonOf = (error: unknown) =>
  error instanceof Error && error.name === "TimeoutError" ? "it did not respond in time" : messageOf(error);
