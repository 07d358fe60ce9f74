// Methods for admins, who manage the users of their tenant, and for operators, who manage all tenants.

import { adminConnectionMethods } from "./connection-methods.ts";
import type { Body, Query, Requests } from "./requests.ts";
import { adminWebhookMethods } from "./webhook-methods.ts";

type Signal = AbortSignal | undefined;

export interface UserPlace {
  readonly tenant: string;
  readonly user: string;
}

export function adminMethods({ call, open }: Pick<Requests, "call" | "open">) {
  return {
    webhooks: adminWebhookMethods({ call }),
    connections: adminConnectionMethods({ call }),
    /** Lists the tenants that have threads. */
    tenants: (query: Query<"GET /admin/tenants"> = {}, signal?: Signal) =>
      call("GET /admin/tenants", { query }, signal),
    /** Lists the users who have threads. */
    users: (query: Query<"GET /admin/users"> = {}, signal?: Signal) =>
      call("GET /admin/users", { query }, signal),
    /** Lists runs, grouped by user. A page can be empty and still have a `next_cursor`. */
    runs: (query: Query<"GET /admin/runs"> = {}, signal?: Signal) =>
      call("GET /admin/runs", { query }, signal),
    /** Lists open interrupts, grouped by user. A page can be empty and still have a `next_cursor`. */
    interrupts: (query: Query<"GET /admin/interrupts"> = {}, signal?: Signal) =>
      call("GET /admin/interrupts", { query }, signal),
    sandboxes: (query: Query<"GET /admin/sandboxes"> = {}, signal?: Signal) =>
      call("GET /admin/sandboxes", { query }, signal),
    /** Reads usage and quotas: by tenant, or of one user. */
    usage: (query: Query<"GET /admin/usage"> = {}, signal?: Signal) =>
      call("GET /admin/usage", { query }, signal),
    /** Lists API keys, newest first. The list never contains the keys' secret parts. */
    keys: (query: Query<"GET /admin/keys"> = {}, signal?: Signal) =>
      call("GET /admin/keys", { query }, signal),
    /** Reads the audit trail of a tenant, newest first. A page can be empty and still have a `next_cursor`. */
    audit: (query: Query<"GET /admin/audit"> = {}, signal?: Signal) =>
      call("GET /admin/audit", { query }, signal),
    /** Creates an API key for a user. Only this response contains the `key` itself. */
    createKey: (body: Body<"POST /admin/keys">, signal?: Signal) =>
      call("POST /admin/keys", { body }, signal),
    revokeKey: (key_id: string, signal?: Signal) =>
      call("POST /admin/keys/{key_id}/revoke", { path: { key_id } }, signal),
    /** Stops a run of any user: `cancel` stops it now, `interrupt` after its current step. */
    stop: (
      owner: UserPlace,
      { thread_id, run_id }: { readonly thread_id: string; readonly run_id: string },
      mode: "cancel" | "interrupt" = "cancel",
      signal?: Signal,
    ) =>
      call(
        "POST /admin/tenants/{tenant}/users/{user}/threads/{thread_id}/runs/{run_id}/cancel",
        { path: { ...placeOf(owner), thread_id, run_id }, body: { mode } },
        signal,
      ),
    /** Backs up the data folder while the server runs. Requires the scope `operator`. */
    backUp: (signal?: Signal) => call("POST /admin/backup", {}, signal),
    /** Discards the records of files on a Docker engine that is lost for good. Requires the scope `operator`. */
    forgetEngine: (engine: string, signal?: Signal) =>
      call("DELETE /admin/engines/{engine}", { path: { engine } }, signal),
    /** Deletes everything that belongs to a user. One request may not be enough; repeat it until `complete` is true. */
    deleteUser: (owner: UserPlace, signal?: Signal) =>
      call("DELETE /admin/tenants/{tenant}/users/{user}", { path: placeOf(owner) }, signal),
    /** Exports everything that belongs to a user as one JSON object per line. The last object has the type `end`. */
    async exportUser(owner: UserPlace, signal?: Signal): Promise<Blob> {
      const operation = "GET /admin/tenants/{tenant}/users/{user}/export";
      return (await open(operation, { path: placeOf(owner) }, signal)).blob();
    },
  };
}

const placeOf = ({ tenant, user }: UserPlace) => ({ tenant, user });
