// Batches: many runs in the background, each on a new thread.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { ownThread } from "../../engine/temporary-threads/own-thread.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { callerOf } from "../../server/http/caller.ts";
import { idempotencyKey } from "../../server/http/run-stream.ts";
import { MAX_BATCH } from "../../server/http/schemas.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { isKept, RunBody } from "./input.ts";
import { prepare } from "./prepare.ts";
import { runShape } from "./runs.ts";

/** The stock SDK sends a batch's fields under the names of its own options and adds `assistant_id`. */
const BatchedRun = RunBody.extend({ onCompletion: RunBody.shape.on_completion });

const Entry = z.looseObject({}).describe("The run, or `error` and `message` if it was refused.");
type Entry = z.infer<typeof Entry>;

export function batchRoutes(app: App, services: RouteServices): void {
  app.post(
    "/runs/batch",
    {
      schema: {
        summary: "Start up to 100 runs, each on a new thread",
        description:
          "Checks all runs before it starts the first one. Returns results in the same order. A new thread is deleted after its run unless `on_completion` is `keep`.",
        tags: ["langgraph"],
        body: boundedList(BatchedRun, MAX_BATCH).min(1),
        response: { 200: z.array(Entry) },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const key = idempotencyKey(request);
      const starts: (() => Promise<Entry>)[] = [];
      for (const [index, { onCompletion, ...sent }] of request.body.entries()) {
        const on_completion = sent.on_completion ?? onCompletion;
        const body = { ...sent, on_completion, if_not_exists: "create", command: null } as const;
        const nth = key === undefined ? undefined : `batch ${index} ${key}`;
        const own = ownThread(services.temporaryThreads, owner, { key: nth, isKept: isKept(body) });
        const start = await prepare(services, callerOf(request), own.thread_id, body);
        starts.push(async () => runShape(await own.begin(() => start())));
      }
      const entries: Entry[] = [];
      for (const start of starts) entries.push(await start().catch(refusalOf));
      return entries;
    },
  );
}

/** Rethrows errors that are not refusals. */
function refusalOf(thrown: unknown): Entry {
  if (!(thrown instanceof AppError)) throw thrown;
  const { code, message, details } = thrown.toInfo();
  return { error: code, message, ...(details ? { details } : {}) };
}
