// The user's schedules.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { RunRecord } from "../../../agent/core/records.ts";
import { nextTimes, Schedule, ScheduleId, ScheduleSpec } from "../../../engine/schedules/schedule.ts";
import { checkTiming } from "../../../engine/schedules/timing.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { ownerOf, sentBy } from "../../auth/guard.ts";
import { idempotencyKey } from "../run-stream.ts";
import { IdempotencyKey, PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const Params = z.object({ schedule_id: ScheduleId });
const IfMatch = z.looseObject({
  "if-match": z.string().max(256).optional().describe("`ETag` of the schedule that you have read."),
});

const ScheduleTimes = ScheduleSpec.pick({ cron: true, at: true, timezone: true, until: true }).meta({
  id: "ScheduleTimes",
});
const NextRuns = Schedule.pick({ next_runs: true }).meta({ id: "NextRuns" });

const tags = ["schedules"];

export function scheduleRoutes(app: App, services: RouteServices): void {
  readRoutes(app, services);
  writeRoutes(app, services);
  runNowRoute(app, services);
  previewRoute(app);
}

function readRoutes(app: App, { schedules }: RouteServices): void {
  app.get(
    "/schedules",
    {
      schema: {
        summary: "List your schedules, by id",
        tags,
        querystring: PageQuery,
        response: { 200: pageOf(Schedule) },
      },
    },
    async (request) => schedules.list(ownerOf(request), omitUndefined(request.query)),
  );

  app.get(
    "/schedules/:schedule_id",
    {
      schema: {
        summary: "Get a schedule, with its next times and its last run",
        tags,
        params: Params,
        response: { 200: Schedule },
      },
    },
    async (request, reply) => {
      const { schedule, version } = await schedules.get(ownerOf(request), request.params.schedule_id);
      return reply.header("etag", `"${version}"`).send(schedule);
    },
  );
}

function writeRoutes(app: App, { schedules }: RouteServices): void {
  app.put(
    "/schedules/:schedule_id",
    {
      schema: {
        summary: "Create or replace a schedule",
        description:
          "Each time that `cron` matches starts exactly one run on one replica, even after a crash. The runs have your permissions, budgets and quotas. With `If-Match`, returns 412 if the schedule has changed since.",
        tags,
        params: Params,
        headers: IfMatch,
        body: ScheduleSpec,
        response: { 200: Schedule },
      },
    },
    async (request, reply) => {
      const { api_key } = sentBy(request);
      const options = { seen: seenIn(request), ...omitUndefined({ api_key }) };
      const { schedule_id } = request.params;
      const { schedule, version } = await schedules.put(ownerOf(request), schedule_id, request.body, options);
      return reply.header("etag", `"${version}"`).send(schedule);
    },
  );

  app.delete(
    "/schedules/:schedule_id",
    {
      schema: {
        summary: "Delete a schedule",
        description: "Runs that the schedule has started continue.",
        tags,
        params: Params,
        headers: IfMatch,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      await schedules.delete(ownerOf(request), request.params.schedule_id, { seen: seenIn(request) });
      return reply.code(204).send(null);
    },
  );
}

function runNowRoute(app: App, { schedules }: RouteServices): void {
  app.post(
    "/schedules/:schedule_id/run",
    {
      schema: {
        summary: "Start a run of a schedule now",
        description:
          "The run is started in addition to the scheduled ones, even while the schedule is paused. A repeated request with the same `Idempotency-Key` returns the same run.",
        tags,
        params: Params,
        headers: IdempotencyKey,
        response: { 202: RunRecord },
      },
    },
    async (request, reply) => {
      const key = idempotencyKey(request);
      const run = await schedules.run(ownerOf(request), request.params.schedule_id, key);
      return reply.code(202).send(run);
    },
  );
}

function previewRoute(app: App): void {
  app.post(
    "/schedules/preview",
    {
      schema: {
        summary: "Show the next times of a schedule, without storing it",
        description: "Returns an empty list if no times are left.",
        tags,
        body: ScheduleTimes,
        response: { 200: NextRuns },
      },
    },
    async ({ body }) => {
      checkTiming(body);
      return { next_runs: nextTimes(body, Date.now()) };
    },
  );
}

/** Returns the version that `If-Match` names. */
function seenIn({ headers }: FastifyRequest): string | undefined {
  const tag = headers["if-match"];
  return tag === undefined || tag === "*" ? undefined : tag.replace(/^(?:W\/)?"|"$/g, "");
}
