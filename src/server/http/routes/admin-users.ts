// Actions for users, by an admin within the tenant or by an operator: stop a run, export and delete a user. Each action
// is logged.

import { z } from "zod";
import { isSettled, RunRecord } from "../../../agent/core/records.ts";
import { deleteUser } from "../../../engine/admin/delete-user.ts";
import { exportUser } from "../../../engine/admin/export-user.ts";
import { keyOf, settledRun } from "../../../engine/runs/control.ts";
import { endRun } from "../../../engine/runs/start.ts";
import { principalOf } from "../../auth/guard.ts";
import { OwnerName } from "../../auth/principal.ts";
import { payloadOf } from "../long-responses.ts";
import { RunParams, StopBody } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { note, requireReach } from "./admin.ts";

const UserParams = z.object({ tenant: OwnerName, user: OwnerName });

const Deleted = z
  .object({
    complete: z
      .boolean()
      .describe(
        "False if some data remains, because it is in use or because one request cannot delete it all. Repeat the request.",
      ),
    runs_cancelled: z.int(),
    threads: z.int(),
    items: z
      .int()
      .describe(
        "Number of items stored for the user: overrides, permission rules, reflections and triggers.",
      ),
    workspaces: z
      .int()
      .describe(
        "Number of workspaces, deleted with their files. With Docker backends, their sandboxes and volumes.",
      ),
    keys: z.int(),
  })
  .describe("Resources that this request deleted.")
  .meta({ id: "DeletedUser" });

const Backup = z
  .object({
    path: z.string().describe("Path of the backup on the server's machine."),
    files: z.int(),
    bytes: z.int(),
    workspaces_left_out: z
      .int()
      .describe(
        "Number of sandboxes missing from the backup because their files are in volumes of a Docker engine.",
      ),
  })
  .meta({ id: "Backup" });

const EngineParams = z.object({ engine: z.string().min(1).max(32) });
const ForgottenEngine = z
  .object({
    lost: z.int().describe("Number of sandboxes whose files were on the engine."),
    kept: z
      .int()
      .describe(
        "Number of sandboxes that were being moved. They continue with the files already on the other engine.",
      ),
  })
  .meta({ id: "ForgottenEngine" });

export function adminUserRoutes(app: App, { admin, runs, unreadResponses }: RouteServices): void {
  const tags = ["admin"];

  app.post(
    "/admin/tenants/:tenant/users/:user/threads/:thread_id/runs/:run_id/cancel",
    {
      schema: {
        summary: "Stop the run of any user",
        description: "Works like `POST /threads/{thread_id}/runs/{run_id}/cancel`, on behalf of the user.",
        tags,
        params: UserParams.extend(RunParams.shape),
        body: StopBody,
        response: { 200: RunRecord, 202: RunRecord },
      },
    },
    async (request, reply) => {
      const { thread_id, run_id, ...owner } = request.params;
      requireReach(principalOf(request), owner);
      const stopped = await endRun(runs, { owner, thread_id, run_id }, request.body.mode);
      note(request, "cancel_run", { ...owner, thread_id, run_id });
      const run = await settledRun(runs, keyOf(owner, stopped), AbortSignal.timeout(5_000));
      return reply.code(isSettled(run.status) ? 200 : 202).send(run);
    },
  );

  app.post(
    "/admin/backup",
    {
      schema: {
        summary: "Back up the data folder while the server runs",
        description:
          "Available only with `STORE=sqlite`. Writes databases, workspaces and volumes to `backups/` in the data folder.",
        tags,
        response: { 200: Backup },
      },
    },
    async (request) => {
      const made = await admin.backUp();
      note(request, "back_up", made);
      return made;
    },
  );

  app.delete(
    "/admin/engines/:engine",
    {
      schema: {
        summary: "Forget a lost Docker engine and the files on it",
        description:
          "Users with files on this engine get new, empty workspaces on other engines. Refused while this server's settings name the engine.",
        tags,
        params: EngineParams,
        response: { 200: ForgottenEngine },
      },
    },
    async (request) => {
      const { engine } = request.params;
      const forgotten = await admin.forgetEngine(engine);
      note(request, "forget_engine", { engine, ...forgotten });
      return forgotten;
    },
  );

  app.delete(
    "/admin/tenants/:tenant/users/:user",
    {
      schema: {
        summary: "Delete all data of a user",
        description:
          "Cancels the user's runs, then deletes triggers, threads, items that agents keep for the user, workspaces and API keys. Keeps usage counters and the tenant's callback tools. Repeat the request until `complete` is true.",
        tags,
        params: UserParams,
        response: { 200: Deleted },
      },
    },
    async (request) => {
      requireReach(principalOf(request), request.params);
      const deleted = await deleteUser(admin, request.params);
      note(request, "delete_user", { ...request.params, ...deleted });
      return deleted;
    },
  );

  app.get(
    "/admin/tenants/:tenant/users/:user/export",
    {
      // A HEAD request would read everything.
      exposeHeadRoute: false,
      schema: {
        summary: "Export all data of a user",
        description:
          "Returns one JSON object per line, with the `type` `export`, `thread`, `message`, `state`, `run`, `item`, `key` or `usage`. The last line has the `type` `end` and counts the lines before it. Workspace files are not included.",
        tags,
        params: UserParams,
        response: { 200: { content: { "application/x-ndjson": { schema: z.string() } } } },
      },
    },
    async (request, reply) => {
      requireReach(principalOf(request), request.params);
      note(request, "export_user", request.params);
      // The export is read from the store only as fast as the client reads the response. If a failure cuts the
      // response, its `end` line is missing.
      const lines = await payloadOf(exportUser(admin, request.params), () => unreadResponses.open(reply));
      return reply.type("application/x-ndjson").send(lines as never);
    },
  );
}
