// Records every request in the audit trail that changed something, read other users' data, or was refused.

import { isIP } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AuditOutcome, NewEntry, Target } from "../../engine/audit/entry.ts";
import type { Audit } from "../../engine/audit/index.ts";
import { within } from "../../lib/hosts.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { accessTo, hasPrincipal, principalOf } from "../auth/guard.ts";
import type { Principal } from "../auth/principal.ts";
import { actionOf, MADE, type RouteAction } from "./audit-actions.ts";
import { isHandedOn } from "./parts.ts";

export interface AuditTrail extends Pick<Audit, "record" | "list"> {
  /** Records users' reads of their own data. */
  readonly reads: boolean;
  /** Records the runs that users start. */
  readonly runs: boolean;
}

/** The ids in a response. */
type ResponseIds = Partial<Readonly<Record<"id" | "name" | "tenant" | "user", string>>>;

/**
 * Call this after `guard` and before adding routes. The server does not start if a route is missing from
 * `audit-actions.ts`.
 */
export function auditRequests(
  server: FastifyInstance,
  trail: AuditTrail,
  trustedProxies: readonly string[],
): void {
  const made = new WeakMap<FastifyRequest, ResponseIds>();
  const addressOf = clientAddress(trustedProxies);
  server.addHook("onRoute", (route) => {
    for (const method of [route.method].flat())
      if (!actionOf(method, route.url))
        throw new Error(`The route \`${method} ${route.url}\` is missing in http/audit-actions.ts.`);
    if (![route.method].flat().some((method) => isToldByResponse(actionOf(method, route.url)))) return;
    route.preSerialization = [
      ...[route.preSerialization ?? []].flat(),
      async (request, _reply, payload) => {
        made.set(request, madeIn(payload));
        return payload;
      },
    ];
  });
  server.addHook("onResponse", async (request, reply) => {
    const action = actionIn(request);
    if (!action || !hasPrincipal(request)) return;
    const outcome = outcomeOf(reply);
    if (!isRecorded(action, outcome, trail)) return;
    trail.record({
      ...entryOf(request, action, { outcome, made: made.get(request) ?? {} }),
      ...{ at: Date.now() - reply.elapsedTime, status: statusOf(reply), outcome, request_id: request.id },
      ...omitUndefined({ ip: addressOf(request) }),
    });
  });
}

function actionIn(request: FastifyRequest): RouteAction | undefined {
  const { url } = request.routeOptions;
  if (isHandedOn(request) || request.is404 || url === undefined) return undefined;
  return actionOf(request.method, url);
}

function isRecorded([as, , id]: RouteAction, outcome: AuditOutcome, { reads, runs }: AuditTrail): boolean {
  if (as === "change" || as === "view") return true;
  if (as === "none") return false;
  // A response for a missing resource looks the same as one for another user's resource.
  if (outcome === "refused") return id !== undefined || as !== "read";
  return (as === "read" && reads) || (as === "run" && runs) || (as === "told" && outcome !== "ok");
}

/** The client disconnected before the response began. No standard defines a status for this case, but 499 is common. */
const CLIENT_LEFT = 499;
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404]);

const statusOf = ({ raw, statusCode }: FastifyReply) => (raw.headersSent ? statusCode : CLIENT_LEFT);

function outcomeOf(reply: FastifyReply): AuditOutcome {
  const status = statusOf(reply);
  if (status < 400) return "ok";
  return REFUSED.has(status) ? "refused" : "failed";
}

function entryOf(
  request: FastifyRequest,
  [, action, id]: RouteAction,
  { outcome, made }: { readonly outcome: AuditOutcome; readonly made: ResponseIds },
): Pick<NewEntry, "tenant" | "actor" | "action" | "target"> {
  const principal = principalOf(request);
  const isAdmins = isOfAdmins(request);
  const isOperator = isAdmins && principal.scopes.includes("operator");
  const about = { ...textsIn(request.query), ...textsIn(request.params) };
  // An admin must not be able to write into another tenant's trail, even by naming that tenant.
  const named = isOperator && outcome === "ok" ? (about.tenant ?? made.tenant) : undefined;
  const tenant = named ?? principal.tenant;
  const user = isAdmins || about.share_id !== undefined ? (about.user ?? made.user) : undefined;
  const targetId = id === MADE ? (made.id ?? made.name) : id === undefined ? undefined : about[id];
  const [type = ""] = action.split(".");
  const target: Target | undefined =
    targetId === undefined
      ? othersOf(request, { tenant: isOperator ? about.tenant : tenant, user })
      : { type, id: targetId, ...omitUndefined({ user }) };
  return { tenant, actor: actorOf(principal, tenant, isOperator), action, target };
}

/** Returns the target of a request that lists other users' data. */
function othersOf(
  request: FastifyRequest,
  asked: { tenant?: string | undefined; user?: string | undefined },
) {
  const { url = "" } = request.routeOptions;
  if (url.startsWith("/plugins/")) return { type: "route", id: url };
  if (!isOfAdmins(request)) return undefined;
  if (asked.user !== undefined) return { type: "user", id: asked.user, user: asked.user };
  return { type: "tenant", id: asked.tenant ?? "*" };
}

function actorOf(
  { api_key, tenant, user }: Principal,
  trail: string,
  isOperator: boolean,
): NewEntry["actor"] {
  const type = isOperator ? "operator" : api_key === undefined ? "user" : "key";
  return { type, id: api_key ?? user, user, ...(tenant === trail ? {} : { tenant }) };
}

function isOfAdmins(request: FastifyRequest): boolean {
  const access = accessTo(request);
  return access === "manage" || access === "operator";
}

/** The response names the tenant that the key belongs to. */
const isToldByResponse = (action: RouteAction | undefined) =>
  action?.[2] === MADE || action?.[1] === "key.revoke";

const madeIn = (payload: unknown): ResponseIds => textsIn(payload);

function textsIn(value: unknown): Partial<Record<string, string>> {
  const texts = Object.entries(Object(value)).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(texts);
}

/**
 * Returns the socket's address. Behind a gateway, returns the last address before the gateway, as reported by the
 * gateway.
 */
function clientAddress(trustedProxies: readonly string[]) {
  const isTrusted = within(trustedProxies);
  return ({ raw, headers }: FastifyRequest): string | undefined => {
    const { remoteAddress } = raw.socket;
    if (remoteAddress === undefined || !isTrusted(remoteAddress)) return remoteAddress;
    const named = [headers["x-forwarded-for"] ?? []].flat().flatMap((each) => each.split(","));
    const last = named.map((each) => each.trim()).findLast((each) => !isTrusted(each));
    return last !== undefined && isIP(last) > 0 ? last : remoteAddress;
  };
}
