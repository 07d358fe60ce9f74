// Webhooks of a user, and of a tenant for all its users.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { DeliveryInfo, DeliveryStatus, deliveryInfo } from "../../../engine/webhooks/delivery.ts";
import {
  type Keeper,
  NewWebhook,
  noWebhook,
  silenceOf,
  type Webhook,
  WebhookInfo,
  WebhookSpec,
  WebhookWithSecret,
  webhookInfo,
} from "../../../engine/webhooks/webhook.ts";
import { newWebhookId } from "../../../engine/webhooks/webhook-store.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { Id } from "../../../protocol/ids.ts";
import { ownerOf, principalOf } from "../../auth/guard.ts";
import { OwnerName } from "../../auth/principal.ts";
import { clientDisconnect } from "../client-disconnect.ts";
import { etagOf, expectedIn, IfMatch } from "../document-versions.ts";
import { PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { note, reachOf, WHO } from "./admin.ts";

const Params = z.object({ webhook_id: Id });
const DeliveryParams = Params.extend({ delivery_id: Id });
const DeliveriesQuery = PageQuery.extend({ status: DeliveryStatus.optional() });
const TestResult = z
  .object({
    delivered: z.boolean(),
    http_status: z.int().optional().describe("Status of the receiver's response."),
    error: z.string().optional().describe("Present only if the sample was not delivered."),
  })
  .meta({ id: "WebhookTest" });

/** The differences between the routes for users and for admins. */
interface Variant {
  readonly base: "/webhooks" | "/admin/webhooks";
  readonly tags: string[];
  readonly events: string;
  readonly query: z.ZodObject;
  /** Throws `not_found` for a tenant that the caller may not access. */
  keeperOf(request: FastifyRequest): Keeper;
  /** Called after a change. */
  changed(request: FastifyRequest, act: string, id: string): void;
}

export function webhookRoutes(app: App, services: RouteServices): void {
  routesAt(app, services, {
    base: "/webhooks",
    tags: ["webhooks"],
    events: "from your own runs, budgets and schedules.",
    query: z.strictObject({}),
    keeperOf: ownerOf,
    changed() {},
  });
  routesAt(app, services, {
    base: "/admin/webhooks",
    tags: ["admin"],
    events: `from all users of a tenant. ${WHO}`,
    query: z.strictObject({ tenant: OwnerName.optional().describe("Default: your tenant.") }),
    keeperOf(request) {
      const principal = principalOf(request);
      const { tenant = principal.tenant } = request.query as { tenant?: string };
      if (!reachOf(principal, { tenant })) throw new AppError("not_found", "There is no such webhook.");
      return { tenant };
    },
    changed(request, act, webhook) {
      const { tenant } = request.query as { tenant?: string };
      note(request, act, { tenant: tenant ?? principalOf(request).tenant, webhook });
    },
  });
}

function routesAt(app: App, services: RouteServices, variant: Variant): void {
  puttingRoutes(app, services, variant);
  changingRoutes(app, services, variant);
  readingRoutes(app, services, variant);
  deliveryRoutes(app, services, variant);
}

const shown = (webhook: Webhook) => webhookInfo(webhook, Date.now());

/** Only admins read the audit trail, so only a tenant's webhook may receive it. Throws `invalid_request`. */
function requireTenants({ user }: Keeper, { on: events }: WebhookSpec): void {
  if (user === undefined || !events.includes("audit.entry")) return;
  throw new AppError(
    "invalid_request",
    "Invalid body: on: only a tenant's webhook can receive `audit.entry`. An admin creates it with `POST /admin/webhooks`.",
  );
}

function puttingRoutes(
  app: App,
  services: RouteServices,
  { base, tags, events, query, keeperOf, changed }: Variant,
): void {
  const { webhooks } = services.webhooks;

  const put = async (request: FastifyRequest, id: string, spec: WebhookSpec) => {
    const keeper = keeperOf(request);
    requireTenants(keeper, spec);
    await requirePublic(services, spec.url);
    const { webhook, version, isNew } = await webhooks.put(keeper, id, spec, expectedIn(request.headers));
    changed(request, "put_webhook", id);
    const body = { ...shown(webhook), ...(isNew ? { secret: webhook.secret } : {}) };
    return { status: isNew ? (201 as const) : (200 as const), etag: etagOf(version), body };
  };

  app.post(
    base,
    {
      schema: {
        summary: "Create a webhook",
        description: `The webhook receives events ${events}`,
        tags,
        querystring: query,
        body: NewWebhook,
        response: { 201: WebhookWithSecret },
      },
    },
    async (request, reply) => {
      const { id = newWebhookId(), ...spec } = request.body;
      if (await webhooks.get(keeperOf(request), id))
        throw new AppError("already_exists", `There is already a webhook \`${id}\`. Replace it with PUT.`);
      const { etag, body } = await put(request, id, spec);
      return reply.code(201).header("etag", etag).send(body);
    },
  );

  app.put(
    `${base}/:webhook_id`,
    {
      schema: {
        summary: "Create or replace a webhook",
        description: `The webhook receives events ${events}\n\nAn existing webhook keeps its secret and is enabled again.`,
        tags,
        params: Params,
        querystring: query,
        headers: IfMatch,
        body: WebhookSpec,
        response: { 200: WebhookWithSecret, 201: WebhookWithSecret },
      },
    },
    async (request, reply) => {
      const { status, etag, body } = await put(request, request.params.webhook_id, request.body);
      return reply.code(status).header("etag", etag).send(body);
    },
  );
}

function changingRoutes(
  app: App,
  services: RouteServices,
  { base, tags, query, keeperOf, changed }: Variant,
): void {
  const { webhooks } = services.webhooks;

  app.delete(
    `${base}/:webhook_id`,
    {
      schema: {
        summary: "Delete a webhook and its deliveries",
        tags,
        params: Params,
        querystring: query,
        headers: IfMatch,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const [keeper, id] = [keeperOf(request), request.params.webhook_id];
      await webhooks.delete(keeper, id, expectedIn(request.headers));
      await services.webhooks.deliveries.forget(keeper, id);
      changed(request, "delete_webhook", id);
      return reply.code(204).send(null);
    },
  );

  app.post(
    `${base}/:webhook_id/rotate`,
    {
      schema: {
        summary: "Replace the secret of a webhook",
        description: "For 24 hours, deliveries carry signatures made with both secrets.",
        tags,
        params: Params,
        querystring: query,
        response: { 200: WebhookWithSecret },
      },
    },
    async (request, reply) => {
      const { webhook_id: id } = request.params;
      const { webhook, version } = await webhooks.rotate(keeperOf(request), id);
      changed(request, "rotate_webhook", id);
      return reply.header("etag", etagOf(version)).send({ ...shown(webhook), secret: webhook.secret });
    },
  );
}

function readingRoutes(app: App, services: RouteServices, { base, tags, query, keeperOf }: Variant): void {
  const { webhooks } = services.webhooks;

  app.get(
    base,
    {
      schema: {
        summary: "List webhooks, by id",
        tags,
        querystring: PageQuery.extend(query.shape),
        response: { 200: pageOf(WebhookInfo) },
      },
    },
    async (request) => {
      // `query` only adds fields to `PageQuery`.
      const { limit, cursor } = request.query as z.infer<typeof PageQuery>;
      const { items, ...rest } = await webhooks.list(keeperOf(request), {
        limit,
        ...omitUndefined({ cursor }),
      });
      return { ...rest, items: items.map(shown) };
    },
  );

  app.get(
    `${base}/:webhook_id`,
    {
      schema: {
        summary: "Get a webhook",
        tags,
        params: Params,
        querystring: query,
        response: { 200: WebhookInfo },
      },
    },
    async (request, reply) => {
      const { webhook, version } = await found(services, keeperOf(request), request.params.webhook_id);
      return reply.header("etag", etagOf(version)).send(shown(webhook));
    },
  );

  app.post(
    `${base}/:webhook_id/test`,
    {
      schema: {
        summary: "Send a sample to a webhook",
        description:
          "Sends an event of the type `webhook.test`, even while the webhook is paused. The server neither stores nor retries the sample.",
        tags,
        params: Params,
        querystring: query,
        response: { 200: TestResult },
      },
    },
    async (request, reply) => {
      const keeper = keeperOf(request);
      const { webhook } = await found(services, keeper, request.params.webhook_id);
      const { http_status, failure } = await services.webhooks.test(keeper, webhook, clientDisconnect(reply));
      return { delivered: failure === undefined, ...omitUndefined({ http_status, error: failure }) };
    },
  );
}

function deliveryRoutes(app: App, services: RouteServices, { base, tags, query, keeperOf }: Variant): void {
  const { deliveries } = services.webhooks;

  app.get(
    `${base}/:webhook_id/deliveries`,
    {
      schema: {
        summary: "List the deliveries of a webhook, newest first",
        description:
          "The server keeps a successful delivery for a day and a failed one for 7 days. A page may be empty and have a `next_cursor`.",
        tags,
        params: Params,
        querystring: DeliveriesQuery.extend(query.shape),
        response: { 200: pageOf(DeliveryInfo) },
      },
    },
    async (request) => {
      const keeper = keeperOf(request);
      // `query` only adds fields to `DeliveriesQuery`.
      const { limit, cursor, status } = request.query as z.infer<typeof DeliveriesQuery>;
      const { webhook } = await found(services, keeper, request.params.webhook_id);
      const page = { limit, ...omitUndefined({ cursor, status }) };
      const { items, ...rest } = await deliveries.list(keeper, webhook.id, page);
      return { ...rest, items: items.map(deliveryInfo) };
    },
  );

  app.post(
    `${base}/:webhook_id/deliveries/:delivery_id/send`,
    {
      schema: {
        summary: "Send a delivery again",
        description: "The receiver gets the same body and `webhook-id`.",
        tags,
        params: DeliveryParams,
        querystring: query,
        response: { 202: DeliveryInfo },
      },
    },
    async (request, reply) => {
      const keeper = keeperOf(request);
      const { webhook_id, delivery_id } = request.params;
      const { webhook } = await found(services, keeper, webhook_id);
      const silence = silenceOf(webhook);
      if (silence) throw new AppError("invalid_request", `Nothing is sent, because ${silence}.`);
      const delivery = await deliveries.again(keeper, webhook_id, delivery_id);
      if (!delivery) throw new AppError("not_found", `There is no delivery \`${delivery_id}\`.`);
      services.webhooks.wake();
      return reply.code(202).send(deliveryInfo(delivery));
    },
  );
}

/** Throws `not_found`. */
async function found({ webhooks: { webhooks } }: RouteServices, keeper: Keeper, id: string) {
  const webhook = await webhooks.get(keeper, id);
  if (!webhook) throw noWebhook(id);
  return webhook;
}

/** Checks the host only, because the rest of a URL may be secret. */
async function requirePublic({ isRefusedTool }: RouteServices, address: string): Promise<void> {
  const url = new URL(address);
  if (!(await isRefusedTool(url))) return;
  throw new AppError(
    "invalid_request",
    `Invalid body: url: \`${url.host}\` has no public address, so nothing would ever be sent there. Use a public address, or have the operator allow this one: HTTP_TOOLS_ALLOW, or http_tools.allow in the server's configuration.`,
  );
}
