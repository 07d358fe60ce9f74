// Sends a model request, either through the provider's SDK or directly with headers that the SDK created.

import type { IncomingMessage } from "node:http";
import { errorText, headersOf, send, streamOf, targetOf } from "../../lib/http-fetch.ts";
import type { ModelRequest } from "../core/model.ts";
import type { OmittedTurns } from "./closed-turns.ts";
import { ProviderError } from "./failure.ts";
import { requestBody, traceHeaders } from "./request-body.ts";

/** A request in the provider's format. */
export interface Wire {
  readonly params: { readonly messages: readonly unknown[] };
  readonly leftOut?: OmittedTurns | undefined;
  /** The headers to send in addition to the SDK's. The names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Creates the provider's form. With `isWhole`, the parameters must be complete. */
export type WireOf = (how: { readonly isWhole: boolean }) => Promise<Wire>;

/** Sends a request and resolves with the unread body of the response. Throws for a status other than 2xx. */
export type Send = (request: ModelRequest, wireOf: WireOf, signal: AbortSignal) => Promise<IncomingMessage>;

interface SdkClient {
  post(
    path: string,
    options: { body: unknown; headers: Record<string, string>; signal: AbortSignal; stream: true },
  ): { asResponse(): Promise<Response> };
}

/**
 * Sends through the SDK, which uses `httpFetch`. With `takesObjectsOnly`, the SDK changes the body and must
 * therefore serialize it itself.
 */
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
 * Sends without the SDK. The SDK provides the address and headers once, because they do not depend on the
 * body. For each call, everything else that the SDK does costs several times as much as sending the request.
 * Use this only for a client whose credentials never change.
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
