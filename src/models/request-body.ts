// The body of a model request. That of a long thread is written message by message, in turns of the event loop of its own.

import { areLong } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { ownTurn } from "../lib/async.ts";

/** Of messages that are written in one turn; one turn ends with the message that passes it. */
const SLICE_CHARS = 256 * 1024;

interface Params {
  readonly messages: readonly unknown[];
}

/** What an SDK is given as the body, with the headers that say what it is. */
export interface RequestBody {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** `params`: what `request` becomes on the wire. An SDK writes a short one itself. */
export async function requestBody(request: ModelRequest, params: Params): Promise<RequestBody> {
  const headers = traceHeaders(request);
  if (!areLong(request.messages)) return { body: params, headers };
  return { body: await written(params), headers: { ...headers, "content-type": "application/json" } };
}

export const traceHeaders = ({ traceparent }: ModelRequest): RequestBody["headers"] =>
  traceparent === undefined ? {} : { traceparent };

async function written({ messages, ...rest }: Params): Promise<Uint8Array> {
  await ownTurn();
  const slices: Buffer[] = [];
  let text = `${JSON.stringify(rest).slice(0, -1)},"messages":[`;
  for (const [index, message] of messages.entries()) {
    text += `${index === 0 ? "" : ","}${JSON.stringify(message)}`;
    if (text.length < SLICE_CHARS) continue;
    slices.push(Buffer.from(text));
    text = "";
    await ownTurn();
  }
  slices.push(Buffer.from(`${text}]}`));
  return Buffer.concat(slices);
}
