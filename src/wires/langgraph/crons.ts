// Crons: create, change, delete, search and count the user's schedules that have a cron expression.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { notFound } from "../../engine/runs/control.ts";
import { ScheduleSpec } from "../../engine/schedules/schedule.ts";
import { boundedList, boundedMap } from "../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ownerOf, sentBy } from "../../server/auth/guard.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { Cron, CronBody, CronChanges, changed, cronOf, inputOf, newSpec, specOf } from "./cron-specs.ts";
import { MAX_KEYS } from "./modes.ts";
import { agentNamed, assistantIdOf } from "./resources/assistants.ts";
import { ThreadParams } from "./resources/threads.ts";

const tags = ["langgraph"];
const CronParams = z.object({ cron_id: z.string().min(1).max(64) });
const Filter = z.looseObject({
  assistant_id: z.string().max(128).nullish(),
  thread_id: z.string().max(1024).nullish(),
  enabled: z.boolean().nullish(),
  metadata: boundedMap(z.string(), z.unknown(), MAX_KEYS).nullish(),
});
const SORTED = ["cron_id", "assistant_id", "thread_id", "created_at", "updated_at", "next_run_date"] as const;
const Search = Filter.extend({
  limit: z.int().min(1).max(1000).default(10),
  offset: z.int().min(0).max(100_000).default(0),
  sort_by: z.enum(SORTED).nullish(),
  sort_order: z.enum(["asc", "desc"]).nullish(),
  select: boundedList(z.string().max(64), 32).nullish(),
});

export function cronRoutes(app: App, services: RouteServices): void {
  makeRoutes(app, services);
  changeRoutes(app, services);
  searchRoutes(app, services);
}

function makeRoutes(app: App, services: RouteServices): void {
  const make = async (request: FastifyRequest, body: z.infer<typeof CronBody>, thread: string) => {
    const { name: agent } = agentNamed(services.agents, body.assistant_id);
    const spec = { ...changed(newSpec(agent, thread), body), input: inputOf(body) };
    return put(services, request, `cron_${randomId()}`, { spec });
  };

  app.post(
    "/runs/crons",
    {
      schema: {
        summary: "Start runs on a cron schedule, each on a new thread",
        tags,
        body: CronBody,
        response: { 200: Cron },
      },
    },
    (request) => make(request, request.body, "new"),
  );

  app.post(
    "/threads/:thread_id/runs/crons",
    {
      schema: {
        summary: "Start runs on a thread on a cron schedule",
        tags,
        params: ThreadParams,
        body: CronBody,
        response: { 200: Cron },
      },
    },
    async (request) => {
      const { thread_id } = request.params;
      if (!(await services.stores.threads.get(ownerOf(request), thread_id)))
        throw notFound("thread", thread_id);
      return make(request, request.body, thread_id);
    },
  );
}

function changeRoutes(app: App, services: RouteServices): void {
  const { schedules } = services;
  const params = CronParams;

  app.patch(
    "/runs/crons/:cron_id",
    { schema: { summary: "Change a cron", tags, params, body: CronChanges, response: { 200: Cron } } },
    async (request) => {
      const { cron_id } = request.params;
      const { schedule, version } = await schedules.get(ownerOf(request), cron_id);
      return put(services, request, cron_id, {
        spec: changed(specOf(schedule), request.body),
        seen: version,
      });
    },
  );

  app.delete(
    "/runs/crons/:cron_id",
    {
      schema: {
        summary: "Delete a cron. Runs that the cron has started continue",
        tags,
        params,
        response: { 200: z.object({}) },
      },
    },
    async (request) => {
      await schedules.delete(ownerOf(request), request.params.cron_id);
      return {};
    },
  );
}

function searchRoutes(app: App, services: RouteServices): void {
  app.post(
    "/runs/crons/search",
    {
      schema: {
        summary: "Search the user's crons",
        tags,
        body: Search,
        response: { 200: z.array(z.looseObject({})) },
      },
    },
    async (request) => {
      const { limit, offset, sort_by, sort_order, select: fields } = request.body;
      const found = await matching(services, ownerOf(request), request.body);
      const by = sort_by ?? "created_at";
      const order = sort_order === "asc" ? 1 : -1;
      found.sort((a, b) => (String(a[by] ?? "") < String(b[by] ?? "") ? -order : order));
      const page = found.slice(offset, offset + limit);
      if (!fields?.length) return page;
      return page.map((cron) =>
        Object.fromEntries(Object.entries(cron).filter(([key]) => fields.includes(key))),
      );
    },
  );

  app.post(
    "/runs/crons/count",
    { schema: { summary: "Count the user's crons", tags, body: Filter, response: { 200: z.int() } } },
    async (request) => (await matching(services, ownerOf(request), request.body)).length,
  );
}

interface CronToWrite {
  readonly spec: ScheduleSpec;
  readonly seen?: string;
}

async function put(
  { schedules, agents }: RouteServices,
  request: FastifyRequest,
  id: string,
  { spec, seen }: CronToWrite,
): Promise<Cron> {
  const owner = ownerOf(request);
  const { api_key } = sentBy(request);
  if (spec.cron === undefined) throw noLine();
  // A change that is valid by itself may exceed a limit together with the stored values, for example of metadata.
  const checked = ScheduleSpec.safeParse(spec);
  if (!checked.success)
    throw new AppError(
      "invalid_request",
      checked.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; "),
    );
  const { schedule } = await schedules.put(owner, id, checked.data, omitUndefined({ api_key, seen }));
  const cron = cronOf(schedule, { user: owner.user, agent: agents.find(undefined).name });
  if (cron) return cron;
  throw noLine();
}

const noLine = () =>
  new AppError("invalid_request", "schedule: a cron needs a line such as `0 9 * * MON-FRI`.");

const PAGE = 100;

/** Returns a user's crons that match a filter. */
async function matching(
  { schedules, agents }: RouteServices,
  owner: Owner,
  { assistant_id, thread_id, enabled, metadata }: z.infer<typeof Filter>,
): Promise<Cron[]> {
  const agent = agents.find(undefined).name;
  const assistant = assistant_id && assistantIdOf(agentNamed(agents, assistant_id).name);
  const found: Cron[] = [];
  let cursor: string | undefined;
  do {
    const page = await schedules.list(owner, { limit: PAGE, ...omitUndefined({ cursor }) });
    found.push(...page.items.flatMap((each) => cronOf(each, { user: owner.user, agent }) ?? []));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  const wanted = Object.entries(metadata ?? {});
  return found.filter(
    (cron) =>
      (!assistant || cron.assistant_id === assistant) &&
      (!thread_id || cron.thread_id === thread_id) &&
      (enabled === undefined || enabled === null || cron.enabled === enabled) &&
      wanted.every(([key, value]) => Object(cron.metadata)[key] === value),
  );
}
