// Lists the branches of a thread and restores them.

import { z } from "zod";
import { isSettled, RunRecord, Thread } from "../../../agent/core/records.ts";
import { branchesOf } from "../../../engine/runs/branches.ts";
import { keyOf, notFound, settledRun } from "../../../engine/runs/control.ts";
import { restoreBranch } from "../../../engine/runs/restore.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { Id } from "../../../protocol/ids.ts";
import { ownerOf } from "../../auth/guard.ts";
import { idempotencyKey } from "../run-stream.ts";
import { ThreadParams } from "../schemas.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

/** The maximum time to wait until a restoration ends, in ms. */
const WAIT_MS = 5_000;

export function branchRoutes(app: App, { runs, stores: { threads } }: HttpServices): void {
  const tags = ["threads"];

  app.get(
    "/threads/:thread_id/branches",
    {
      schema: {
        summary: "List the branches of a thread, newest first",
        description:
          "A branch keeps a thread as it was before messages were replaced. A branch is itself a thread: read its messages with its own id. `parent.replaced` is the id of the first message that was replaced.",
        tags,
        params: ThreadParams,
        response: { 200: z.object({ items: z.array(Thread) }) },
      },
    },
    async (request) => {
      const place = { owner: ownerOf(request), thread_id: request.params.thread_id };
      if (!(await threads.get(place.owner, place.thread_id))) throw notFound("thread", place.thread_id);
      return { items: await branchesOf(threads, place) };
    },
  );

  app.post(
    "/threads/:thread_id/branches/:branch_id/restore",
    {
      schema: {
        summary: "Restore a branch. The messages that it replaces become another branch",
        description:
          "Returns 200 with the run that restored the branch, or 202 if that run has not ended within five seconds. The run makes no model call.",
        tags,
        params: ThreadParams.extend({ branch_id: Id }),
        response: { 200: RunRecord, 202: RunRecord },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const begun = await restoreBranch(runs, owner, {
        ...request.params,
        ...omitUndefined({ idempotency_key: idempotencyKey(request) }),
      });
      const run = await settledRun(runs, keyOf(owner, begun), AbortSignal.timeout(WAIT_MS));
      return reply.code(isSettled(run.status) ? 200 : 202).send(run);
    },
  );
}
