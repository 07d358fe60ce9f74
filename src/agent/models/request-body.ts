// Creates the body of a model request. A long thread is serialized over several ticks of the event loop, and closed turns
// are serialized only once.

import { ownTick } from "../../lib/ticks.ts";
import { areLong } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import type { OmittedTurns } from "./closed-turns.ts";
import { jsonList } from "./json-list.ts";

interface Params {
  readonly messages: readonly unknown[];
}

/** The body for an SDK, with the headers that describe it. */
export interface RequestBody {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the body. `params` are the parameters for `request`. An SDK serializes short parameters itself. */
export async function requestBody(
  request: ModelRequest,
  params: Params,
  leftOut?: OmittedTurns,
): Promise<RequestBody> {
  const headers = traceHeaders(request);
  const { tenant = "" } = request;
  const open = leftOut ? request.messages.slice(leftOut.closed.messages.length) : request.messages;
  if (areLong(open)) await ownTick(tenant);
  else if (!leftOut) return { body: params, headers };
  return {
    body: await written(params, leftOut, tenant),
    headers: { ...headers, "content-type": "application/json" },
  };
}

export const traceHeaders = ({ traceparent }: ModelRequest): RequestBody["headers"] =>
  traceparent === undefined ? {} : { traceparent };

async function written(
  { messages, ...rest }: Params,
  leftOut: OmittedTurns | undefined,
  tenant: string,
): Promise<Uint8Array> {
  const at = leftOut?.at ?? 0;
  const before = messages.slice(0, at).map((message) => `${JSON.stringify(message)},`);
  const head = `${JSON.stringify(rest).slice(0, -1)},"messages":[${before.join("")}`;
  const closed = leftOut ? [leftOut.closed.text, Buffer.from(",")] : [];
  const open = await jsonList(messages.slice(at), tenant);
  return Buffer.concat([Buffer.from(head), ...closed, ...open, Buffer.from("]}")]);
}
