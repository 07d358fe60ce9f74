// The values of a thread after a run on it, for clients that wait for the run.

import type { FastifyReply } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { keyOf, settledRun } from "../../engine/runs/control.ts";
import { openOn } from "../../engine/runs/start.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { failureOf } from "../../protocol/end.ts";
import type { Owner } from "../../protocol/ids.ts";
import { clientDisconnect } from "../../server/http/client-disconnect.ts";
import { cancelIfActive } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { credentialsEnd } from "../../server/http/sse.ts";
import { messageTexts, type WrittenJson } from "./answers.ts";
import { interruptsOf, stateShape } from "./history.ts";
import { valuesText } from "./resources/states.ts";

export const Values = z
  .looseObject({})
  .describe("messages, todos and files, with `__interrupt__` or `__error__` if the run ended that way");
interface WaitOptions {
  readonly owner: Owner;
  readonly run: RunRecord;
  readonly on_disconnect: "continue" | "cancel";
}

/**
 * Returns the thread's values once the run has ended. Throws `shutting_down`, or the reason if the credentials end
 * first.
 */
export async function finalValues(
  { runs, stores: { threads }, streams, access, unreadResponses }: RouteServices,
  reply: FastifyReply,
  { owner, run, on_disconnect }: WaitOptions,
): Promise<WrittenJson> {
  const left = clientDisconnect(reply);
  const over = credentialsEnd(access.credentials, reply);
  const key = keyOf(owner, run);
  const ended = await settledRun(runs, key, AbortSignal.any([left, over, streams.closing]));
  if (left.aborted && on_disconnect === "cancel") await cancelIfActive(runs, key);
  if (over.aborted) throw over.reason;
  if (!isSettled(ended.status) && !left.aborted)
    throw new AppError("shutting_down", "The server is shutting down. The run is kept. Join it again.");
  const { thread_id } = run;
  const [messages, state, open] = await Promise.all([
    threads.messages(owner, thread_id),
    threads.state(owner, thread_id),
    ended.status === "interrupted" ? openOn(threads, owner, thread_id) : [],
  ]);
  const rest = {
    ...stateShape(state),
    ...(open.length > 0 ? { __interrupt__: interruptsOf(open) } : {}),
    ...omitUndefined({ __error__: errorOf(ended) }),
  };
  const kept = await messageTexts(reply, messages, unreadResponses);
  return { ...kept, parts: valuesText(kept.texts, rest) };
}

function errorOf(run: RunRecord) {
  const failure = failureOf(run);
  return failure && { error: failure.code, message: failure.message };
}
