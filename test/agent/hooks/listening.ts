// A scripted model that keeps what it was asked.

import { textOf } from "../../../src/agent/core/message.ts";
import type { Model, ModelRequest } from "../../../src/agent/core/model.ts";
import { type Script, scriptedModel, type Turn } from "../../../src/agent/models/scripted.ts";

export function listening(script: readonly Turn[] | Script): { model: Model; asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  const turnOf: Script = typeof script === "function" ? script : (_, call) => script[call] ?? { say: "ok" };
  const model = scriptedModel((request, call) => {
    asked.push(request);
    return turnOf(request, call);
  });
  return { model, asked };
}

/** The texts of a request's messages. */
export const textsIn = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).map(({ content }) => textOf(content));

/** The reminders in a request, which the thread does not hold. */
export const remindersIn = (request: ModelRequest | undefined) =>
  textsIn(request).filter((text) => text.startsWith("<reminder>"));

/** The messages with which `after` begins as `before` did: all of `before` when its cache can be used. */
export function sharedStart(before: ModelRequest | undefined, after: ModelRequest | undefined): number {
  const [one, other] = [before?.messages ?? [], after?.messages ?? []];
  const at = one.findIndex((message, index) => JSON.stringify(message) !== JSON.stringify(other[index]));
  return at === -1 ? one.length : at;
}
