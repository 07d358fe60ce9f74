// API keys, for an admin's tenant or for an operator: list keys, create them for users, and revoke them. Each change is
// logged.

import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import type { Page } from "../../../agent/core/stores.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { ApiKey, type ApiKeyStore, issueApiKey } from "../../auth/api-keys.ts";
import { principalOf } from "../../auth/guard.ts";
import { Scope } from "../../auth/principal.ts";
import { type PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { AdminQuery, note, reachOf, requireReach, WHO } from "./admin.ts";

const ShownKey = ApiKey.meta({ id: "ApiKey" });

const NewKey = z.strictObject({
  tenant: ApiKey.shape.tenant.optional().describe("Default: your tenant."),
  user: ApiKey.shape.user,
  scopes: z
    .array(Scope.exclude(["admin", "operator"]))
    .min(1)
    .max(3)
    .default(["read", "run"])
    .describe("Only `skein keys create` can create keys with `admin` or `operator`."),
  name: ApiKey.shape.name.default(""),
  expires_at: z.iso
    .datetime({ offset: true })
    .optional()
    .describe("Default: the key is valid until it is revoked."),
});

const IssuedKey = ApiKey.extend({
  key: z
    .string()
    .describe("The key itself, returned only in this response. The server stores only its hash."),
}).meta({ id: "IssuedApiKey" });

export function adminKeyRoutes(app: App, { apiKeys }: RouteServices): void {
  const tags = ["admin"];

  app.get(
    "/admin/keys",
    {
      schema: {
        summary: "List the API keys of all users",
        description: `Newest first, including revoked and expired keys. Never returns the keys themselves. ${WHO}`,
        tags,
        querystring: AdminQuery,
        response: { 200: pageOf(ShownKey) },
      },
    },
    async (request) => {
      const reach = reachOf(principalOf(request), request.query);
      if (!reach || !apiKeys) return { items: [] };
      const all = await apiKeys.list(reach.tenant);
      const found = reach.user === undefined ? all : all.filter(({ user }) => user === reach.user);
      return pageIn(found, request.query);
    },
  );

  app.post(
    "/admin/keys",
    {
      schema: {
        summary: "Create an API key for a user",
        description: `Available only with \`AUTH=api_key\`. ${WHO}`,
        tags,
        body: NewKey,
        response: { 201: IssuedKey },
      },
    },
    async (request, reply) => {
      const { tenant = principalOf(request).tenant, expires_at, ...about } = request.body;
      requireReach(principalOf(request), { tenant, user: about.user });
      const end = expires_at && new Date(expires_at).toISOString();
      if (end && !(Date.parse(end) > Date.now()))
        throw new AppError(
          "invalid_request",
          `Invalid body: expires_at: must be in the future, not ${expires_at}.`,
        );
      const { key, record } = await issueApiKey(keysOf(apiKeys), {
        ...about,
        tenant,
        ...omitUndefined({ expires_at: end }),
      });
      note(request, "create_key", { tenant, user: record.user, key: record.id, scopes: record.scopes });
      return reply.code(201).send({ ...record, key });
    },
  );

  app.post(
    "/admin/keys/:key_id/revoke",
    {
      schema: {
        summary: "Revoke an API key",
        description: `Within a few seconds, servers refuse the key and end its runs. ${WHO}`,
        tags,
        params: z.object({ key_id: z.string().regex(/^[0-9A-Za-z]{1,64}$/) }),
        response: { 200: ShownKey },
      },
    },
    async (request) => {
      const { key_id } = request.params;
      const missing = new AppError("not_found", `There is no API key \`${key_id}\`.`);
      const found = await apiKeys?.find(key_id);
      if (!found || !reachOf(principalOf(request), { tenant: found.tenant })) throw missing;
      const revoked = await apiKeys?.revoke(key_id);
      if (!revoked) throw missing;
      note(request, "revoke_key", { tenant: revoked.tenant, user: revoked.user, key: key_id });
      return revoked;
    },
  );
}

function keysOf(keys: ApiKeyStore | undefined): ApiKeyStore {
  if (keys) return keys;
  throw new AppError(
    "invalid_request",
    "This server has no API keys, because its setting AUTH is not `api_key`.",
  );
}

/**
 * A cursor contains the id and the time of the last key, because that key may have been deleted. Throws
 * `invalid_request`.
 */
function pageIn(keys: readonly ApiKey[], { limit, cursor }: z.infer<typeof PageQuery>): Page<ApiKey> {
  const after = cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString();
  if (after !== undefined && !/^\S+ \S+$/.test(after))
    throw new AppError("invalid_request", `\`${cursor}\` is not a valid cursor for this list.`);
  const left = after === undefined ? keys : keys.filter((key) => placeOf(key) < after);
  const items = left.slice(0, limit);
  const last = items.at(-1);
  if (left.length <= limit || !last) return { items };
  return { items, next_cursor: Buffer.from(placeOf(last)).toString("base64url") };
}

const placeOf = ({ created_at, id }: ApiKey) => `${created_at} ${id}`;
