// How a model request goes out: through the provider's SDK, or beside it with the head that the SDK makes.

import type { IncomingMessage } from "node:http";
import { errorText, headersOf, send, streamOf, targetOf } from "../../lib/http-fetch.ts";
import type { ModelRequest } from "../core/model.ts";
import type { LeftOut } from "./closed-turns.ts";
import { ProviderError } from "./failure.ts";
import { requestBody, traceHeaders } from "./request-body.ts";

/** What a request becomes on the wire. */
export interface Wire {
  readonly params: { readonly messages: readonly unknown[] };
  readonly leftOut?: LeftOut | undefined;
  /** Beside those of the SDK, their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `isWhole`: nothing may be left out of the parameters. */
export type WireOf = (how: { readonly isWhole: boolean }) => Promise<Wire>;

/** Resolves with the answer's unread body; throws for an answer with another status than 2xx. */
export type Send = (request: ModelRequest, wireOf: WireOf, signal: AbortSignal) => Promise<IncomingMessage>;

interface SdkClient {
  post(
    path: string,
    options: { body: unknown; headers: Record<string, string>; signal: AbortSignal; stream: true },
  ): { asResponse(): Promise<Response> };
}

/** Through the SDK, which was given `httpFetch`. `takesObjectsOnly`: it changes the body, and so must write it itself. */
export function throughSdk(client: SdkClient, path: string, { takesObjectsOnly = false } = {}): Send {
  return async (request, wireOf, signal) => {
    const { params, headers: own, leftOut } = await wireOf({ isWhole: takesObjectsOnly });
    const { body, headers } = takesObjectsOnly
      ? { body: params, headers: traceHeaders(request) }
      : await requestBody(request, params, leftOut);
    const response = await client
      .post(path, { body, headers: { ...own, ...headers }, signal, stream: true })
      .asResponse();
    const stream = streamOf(response);
    if (stream) return stream;
    throw new TypeError("The SDK did not use the fetch it was given.");
  };
}

interface BuildingClient {
  buildRequest(options: { method: "post"; path: string; body: object }): Promise<{
    readonly req: { readonly headers: Headers };
    readonly url: string;
    readonly timeout: number;
  }>;
}

/**
 * Beside the SDK, which is asked once for the address and the headers: they do not depend on the body, and the rest of what it
 * does for a call costs several times what sending it does. Only for a client whose credentials never change.
 */
export function besideSdk(client: BuildingClient, path: string): Send {
  let learned: ReturnType<typeof headOf> | undefined;
  return async (request, wireOf, signal) => {
    learned ??= headOf(client, path);
    const { target, headers, timeoutMs } = await learned;
    const { params, headers: own, leftOut } = await wireOf({ isWhole: false });
    const { body, headers: about } = await requestBody(request, params, leftOut);
    const answer = await send(target, {
      method: "POST",
      headers: { ...headers, ...own, ...about },
      body: body instanceof Uint8Array ? body : JSON.stringify(body),
      signal,
      timeoutMs,
    });
    const { statusCode: status = 0 } = answer;
    if (status >= 200 && status < 300) return answer;
    const text = await errorText(answer);
    const refusal = { status, headers: headersOf(answer) };
    throw new ProviderError(`${status} ${text || "without a body"}`, { body: parsed(text), refusal });
  };
}

async function headOf(client: BuildingClient, path: string) {
  const { req, url, timeout } = await client.buildRequest({ method: "post", path, body: {} });
  return { target: targetOf(new URL(url)), headers: Object.fromEntries(req.headers), timeoutMs: timeout };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
