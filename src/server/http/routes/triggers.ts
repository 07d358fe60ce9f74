// A user's triggers: create, change, list and try them.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import type { Triggers } from "../../../engine/triggers/index.ts";
import { planOf } from "../../../engine/triggers/plan.ts";
import type { KeptTrigger } from "../../../engine/triggers/store.ts";
import {
  checkSecret,
  Delivery,
  newSecret,
  RotateSecret,
  rotated,
  type Trigger,
  TriggerInfo,
  TriggerSpec,
} from "../../../engine/triggers/trigger.ts";
import { boundedMap } from "../../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { randomId } from "../../../lib/random-id.ts";
import { Id } from "../../../protocol/ids.ts";
import { ownerOf, principalOf } from "../../auth/guard.ts";
import { etagOf, expectedIn, IfMatch } from "../document-versions.ts";
import { PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const TriggerParams = z.object({ trigger_id: Id });
const ONCE =
  "A secret that the server has created. Present only in the response to the request that created it.";
const NewTrigger = TriggerInfo.extend({ secret: z.string().optional().describe(ONCE) }).meta({
  id: "NewTrigger",
});
const ShownTrigger = TriggerInfo.extend({
  deliveries: z.array(Delivery).describe("The last 20 deliveries, newest first."),
}).meta({ id: "TriggerWithDeliveries" });

const SampleDelivery = z
  .strictObject({
    headers: boundedMap(z.string().max(128), z.string().max(4096), 100)
      .default({})
      .describe("Headers of the delivery. Credentials and signatures are not needed."),
    body: z.unknown().describe("Body of the delivery as JSON."),
  })
  .meta({ id: "SampleDelivery" });

const Planned = z
  .object({
    ignored: z.string().optional().describe("Reason why the delivery would start no run."),
    delivery_id: z.string(),
    agent: z.string().optional(),
    input: z.string().optional(),
    thread_id: z.string().optional(),
    metadata: TriggerSpec.shape.metadata.unwrap().optional(),
  })
  .meta({ id: "PlannedDelivery" });

const tags = ["triggers"];

export function triggerRoutes(app: App, services: RouteServices): void {
  putRoutes(app, services);
  readRoutes(app, services);
  secretRoute(app, services);
  testRoute(app, services);
}

function putRoutes(app: App, { triggers }: RouteServices): void {
  const description =
    "The response contains the `url` to give to the sender and, unless you send a secret, the secret that the server has created. It is returned only once. Runs of the trigger act for you, with the API key of this request.";

  app.put(
    "/triggers/:trigger_id",
    {
      schema: {
        summary: "Create or replace a trigger",
        description: `${description} A replaced trigger keeps its URL and, unless you send a new one, its secret.`,
        tags,
        params: TriggerParams,
        headers: IfMatch,
        body: TriggerSpec,
        response: { 200: NewTrigger, 201: NewTrigger },
      },
    },
    async (request, reply) => {
      const { trigger, version, isNew, secret } = await put(triggers, request.params.trigger_id, request);
      reply.code(isNew ? 201 : 200).header("etag", etagOf(version));
      return reply.send(newTrigger(triggers, trigger, secret));
    },
  );

  app.post(
    "/triggers",
    {
      schema: {
        summary: "Create a trigger with an id that the server generates",
        description,
        tags,
        body: TriggerSpec,
        response: { 201: NewTrigger },
      },
    },
    async (request, reply) => {
      const { trigger, version, secret } = await put(triggers, `trg_${randomId()}`, request);
      reply.code(201).header("etag", etagOf(version));
      return reply.send(newTrigger(triggers, trigger, secret));
    },
  );
}

const newTrigger = ({ infoOf }: Pick<Triggers, "infoOf">, trigger: Trigger, secret: string | undefined) => ({
  ...infoOf(trigger),
  ...omitUndefined({ secret }),
});

/** `secret` is set only if the server created it. */
async function put(
  { store, checkAgent }: Triggers,
  id: string,
  request: FastifyRequest<{ Body: z.infer<typeof TriggerSpec> }>,
): Promise<KeptTrigger & { readonly isNew: boolean; readonly secret: string | undefined }> {
  const { secret: sent, ...spec } = request.body;
  checkAgent(spec.agent);
  const { scheme } = spec.verify;
  checkSecret(scheme, sent);
  const made = sent === undefined ? newSecret(scheme) : undefined;
  const { api_key } = principalOf(request);
  const kept = await store.put(
    ownerOf(request),
    id,
    (before, now) => {
      const at = new Date(now).toISOString();
      const own = sent ?? before?.secret;
      checkSecret(scheme, own);
      // Another scheme would interpret the old secret differently: as no bytes at all, if the format does not match.
      const isSameScheme = before?.verify.scheme === scheme;
      const previous = sent === undefined && isSameScheme ? before.previous : undefined;
      const secret = own ?? made;
      const times = { created_at: before?.created_at ?? at, updated_at: at };
      return { ...spec, ...times, ...omitUndefined({ secret, previous, api_key }) };
    },
    expectedIn(request.headers),
  );
  return { ...kept, secret: made !== undefined && kept.trigger.secret === made ? made : undefined };
}

function readRoutes(app: App, { triggers }: RouteServices): void {
  app.get(
    "/triggers",
    {
      schema: {
        summary: "List your triggers, newest first",
        tags,
        querystring: PageQuery,
        response: { 200: pageOf(TriggerInfo) },
      },
    },
    async (request) => {
      const { items, ...page } = await triggers.store.list(ownerOf(request), request.query);
      return { items: items.map(triggers.infoOf), ...page };
    },
  );

  app.get(
    "/triggers/:trigger_id",
    {
      schema: {
        summary: "Get a trigger with its last deliveries",
        description:
          "The response lists the deliveries with their ids and outcomes, but without their bodies.",
        tags,
        params: TriggerParams,
        response: { 200: ShownTrigger },
      },
    },
    async (request, reply) => {
      const { trigger_id: id } = request.params;
      const kept = await triggers.store.get(ownerOf(request), id);
      if (!kept) throw noTrigger(id);
      reply.header("etag", etagOf(kept.version));
      const deliveries = await triggers.store.deliveries(ownerOf(request), id);
      return { ...triggers.infoOf(kept.trigger), deliveries };
    },
  );

  app.delete(
    "/triggers/:trigger_id",
    {
      schema: {
        summary: "Delete a trigger",
        description: "Its URL returns 404 from then on. Runs in progress continue.",
        tags,
        params: TriggerParams,
        headers: IfMatch,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { trigger_id: id } = request.params;
      if (!(await triggers.store.delete(ownerOf(request), id, expectedIn(request.headers))))
        throw noTrigger(id);
      return reply.code(204).send(null);
    },
  );
}

function secretRoute(app: App, { triggers }: RouteServices): void {
  app.post(
    "/triggers/:trigger_id/rotate",
    {
      schema: {
        summary: "Replace the secret of a trigger",
        description:
          "The old secret remains valid along with the new one for `keep_old_for` seconds, one day by default. A secret that the server generated is returned only once.",
        tags,
        params: TriggerParams,
        body: RotateSecret,
        response: { 200: NewTrigger },
      },
    },
    async (request, reply) => {
      const { trigger_id: id } = request.params;
      const { secret: sent, keep_old_for } = request.body;
      let made: string | undefined;
      const kept = await triggers.store.change(ownerOf(request), id, (before, now) => {
        const { scheme } = before.verify;
        checkSecret(scheme, sent);
        made = sent === undefined ? newSecret(scheme) : undefined;
        return rotated(before, sent ?? made, keep_old_for, now);
      });
      if (!kept) throw noTrigger(id);
      reply.header("etag", etagOf(kept.version));
      return newTrigger(triggers, kept.trigger, made);
    },
  );
}

function testRoute(app: App, { triggers }: RouteServices): void {
  app.post(
    "/triggers/:trigger_id/test",
    {
      schema: {
        summary: "Show the run that a delivery would start, without starting it",
        description: "Does not verify the delivery. Also works for a paused trigger.",
        tags,
        params: TriggerParams,
        body: SampleDelivery,
        response: { 200: Planned },
      },
    },
    async (request) => {
      const { trigger_id: id } = request.params;
      const kept = await triggers.store.get(ownerOf(request), id);
      if (!kept) throw noTrigger(id);
      const { headers, body } = request.body;
      const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
      const raw = Buffer.from(JSON.stringify(body ?? null));
      return planOf(kept.trigger, { headers: Object.fromEntries(lower), raw }, body);
    },
  );
}

const noTrigger = (id: string) => new AppError("not_found", `There is no trigger \`${id}\`.`);
