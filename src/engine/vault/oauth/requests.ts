// Requests of the authorization flow: bounded in bytes and time, and to public addresses only, unless the operator has named them.

import { messageOf } from "../../../agent/core/errors.ts";
import type { HostList } from "../../../lib/hosts.ts";
import { createPublicFetch, type PublicRequest } from "../../../lib/ssrf-safe-fetch/index.ts";

const MAX_ANSWER_BYTES = 256 * 1024;
/** How long one answer may take, in ms. */
const ANSWER_MS = 10_000;

export interface FlowAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if the answer is no JSON. */
  readonly json: unknown;
}

export interface FlowRequests {
  /** Throws an `Error` whose message names neither the address nor words of its server, or the reason of `signal`. */
  send(url: string, request: Pick<PublicRequest, "method" | "headers" | "body">): Promise<FlowAnswer>;
}

/** `own`: the address of the MCP server, which the operator has chosen, so that it may be private. */
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

/** The JSON at an address; undefined if it answers anything but 200 with JSON, or cannot be reached. */
export async function jsonAt(requests: FlowRequests, url: string): Promise<unknown> {
  const { status, json } = await requests.send(url, { method: "GET", headers: {} });
  return status === 200 ? json : undefined;
}

/** Completes "… could not be read: …". */
export const reasonOf = (error: unknown) =>
  error instanceof Error && error.name === "TimeoutError" ? "it did not respond in time" : messageOf(error);
