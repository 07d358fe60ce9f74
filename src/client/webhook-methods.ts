// Methods for webhooks: a user's own, and a tenant's for its admins.

import type { Body, Query, Requests } from "./requests.ts";

type Signal = AbortSignal | undefined;
type Spec = Body<"PUT /webhooks/{webhook_id}">;
type Tenant = Query<"GET /admin/webhooks/{webhook_id}">;

/**
 * `version` is the `ETag` from a read. If the webhook has changed since, the server refuses the call with
 * `precondition_failed`.
 */
export interface ChangeOptions {
  readonly version?: string | undefined;
}

const at = (webhook_id: string) => ({ path: { webhook_id } });
const ifMatch = ({ version }: ChangeOptions) =>
  version === undefined ? {} : { headers: { "if-match": version } };

export function webhookMethods({ call }: Pick<Requests, "call">) {
  return {
    /** Lists your webhooks, sorted by id. */
    list: (query: Query<"GET /webhooks"> = {}, signal?: Signal) => call("GET /webhooks", { query }, signal),
    get: (id: string, signal?: Signal) => call("GET /webhooks/{webhook_id}", at(id), signal),
    /** Creates a webhook. Only this response contains the secret. */
    create: (webhook: Body<"POST /webhooks">, signal?: Signal) =>
      call("POST /webhooks", { body: webhook }, signal),
    /** Creates or replaces a webhook. The response contains the secret only if the webhook is new. */
    put: (id: string, webhook: Spec, options: ChangeOptions = {}, signal?: Signal) =>
      call("PUT /webhooks/{webhook_id}", { ...at(id), body: webhook }, signal, ifMatch(options)),
    delete: (id: string, options: ChangeOptions = {}, signal?: Signal) =>
      call("DELETE /webhooks/{webhook_id}", at(id), signal, ifMatch(options)),
    /** Creates a new secret. For a day, the previous secret also signs deliveries. */
    rotate: (id: string, signal?: Signal) => call("POST /webhooks/{webhook_id}/rotate", at(id), signal),
    /** Sends a sample to the webhook once. */
    test: (id: string, signal?: Signal) => call("POST /webhooks/{webhook_id}/test", at(id), signal),
    /** Lists deliveries, newest first. A page can be empty and still have a `next_cursor`. */
    deliveries: (id: string, query: Query<"GET /webhooks/{webhook_id}/deliveries"> = {}, signal?: Signal) =>
      call("GET /webhooks/{webhook_id}/deliveries", { ...at(id), query }, signal),
    /** Sends a delivery again. */
    send: (webhook_id: string, delivery_id: string, signal?: Signal) =>
      call(
        "POST /webhooks/{webhook_id}/deliveries/{delivery_id}/send",
        { path: { webhook_id, delivery_id } },
        signal,
      ),
  };
}

/** The same methods for a tenant's webhooks. An operator can name the tenant. */
export function adminWebhookMethods({ call }: Pick<Requests, "call">) {
  return {
    list: (query: Query<"GET /admin/webhooks"> = {}, signal?: Signal) =>
      call("GET /admin/webhooks", { query }, signal),
    get: (id: string, query: Tenant = {}, signal?: Signal) =>
      call("GET /admin/webhooks/{webhook_id}", { ...at(id), query }, signal),
    create: (webhook: Body<"POST /admin/webhooks">, query: Tenant = {}, signal?: Signal) =>
      call("POST /admin/webhooks", { body: webhook, query }, signal),
    put: (id: string, webhook: Spec, { version, ...query }: ChangeOptions & Tenant = {}, signal?: Signal) =>
      call(
        "PUT /admin/webhooks/{webhook_id}",
        { ...at(id), body: webhook, query },
        signal,
        ifMatch({ version }),
      ),
    delete: (id: string, { version, ...query }: ChangeOptions & Tenant = {}, signal?: Signal) =>
      call("DELETE /admin/webhooks/{webhook_id}", { ...at(id), query }, signal, ifMatch({ version })),
    rotate: (id: string, query: Tenant = {}, signal?: Signal) =>
      call("POST /admin/webhooks/{webhook_id}/rotate", { ...at(id), query }, signal),
    test: (id: string, query: Tenant = {}, signal?: Signal) =>
      call("POST /admin/webhooks/{webhook_id}/test", { ...at(id), query }, signal),
    deliveries: (
      id: string,
      query: Query<"GET /admin/webhooks/{webhook_id}/deliveries"> = {},
      signal?: Signal,
    ) => call("GET /admin/webhooks/{webhook_id}/deliveries", { ...at(id), query }, signal),
    send: (webhook_id: string, delivery_id: string, query: Tenant = {}, signal?: Signal) =>
      call(
        "POST /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/send",
        { path: { webhook_id, delivery_id }, query },
        signal,
      ),
  };
}
