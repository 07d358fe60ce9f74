// The methods of admins, for the users of their tenant, and of operators, for all.

import type { Body, Query, Requests } from "./requests.ts";

type Signal = AbortSignal | undefined;

export interface UserPlace {
  readonly tenant: string;
  readonly user: string;
}

export function adminMethods({ call, open }: Pick<Requests, "call" | "open">) {
  return {
    /** Tenants with threads. */
    tenants: (query: Query<"GET /admin/tenants"> = {}, signal?: Signal) =>
      call("GET /admin/tenants", { query }, signal),
    /** Users with threads. */
    users: (query: Query<"GET /admin/users"> = {}, signal?: Signal) =>
      call("GET /admin/users", { query }, signal),
    /** Grouped by user. A page may be empty and have a `next_cursor`. */
    runs: (query: Query<"GET /admin/runs"> = {}, signal?: Signal) =>
      call("GET /admin/runs", { query }, signal),
    /** Grouped by user. A page may be empty and have a `next_cursor`. */
    interrupts: (query: Query<"GET /admin/interrupts"> = {}, signal?: Signal) =>
      call("GET /admin/interrupts", { query }, signal),
    sandboxes: (query: Query<"GET /admin/sandboxes"> = {}, signal?: Signal) =>
      call("GET /admin/sandboxes", { query }, signal),
    /** Usage and quotas, by tenant, or of one user. */
    usage: (query: Query<"GET /admin/usage"> = {}, signal?: Signal) =>
      call("GET /admin/usage", { query }, signal),
    /** API keys, newest first; never what is secret of them. */
    keys: (query: Query<"GET /admin/keys"> = {}, signal?: Signal) =>
      call("GET /admin/keys", { query }, signal),
    /** Makes an API key for a user. `key` of the answer is shown this once. */
    createKey: (body: Body<"POST /admin/keys">, signal?: Signal) =>
      call("POST /admin/keys", { body }, signal),
    revokeKey: (key_id: string, signal?: Signal) =>
      call("POST /admin/keys/{key_id}/revoke", { path: { key_id } }, signal),
    /** Stops any user's run: `cancel` now, `interrupt` after its current step. */
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
    /** Backs up the data folder while the server runs. Needs `operator`. */
    backUp: (signal?: Signal) => call("POST /admin/backup", {}, signal),
    /** Gives up the files of a Docker engine that is lost for good. Needs `operator`. */
    forgetEngine: (engine: string, signal?: Signal) =>
      call("DELETE /admin/engines/{engine}", { path: { engine } }, signal),
    /** Deletes everything of a user, as far as one request reaches: repeat it until `complete`. */
    deleteUser: (owner: UserPlace, signal?: Signal) =>
      call("DELETE /admin/tenants/{tenant}/users/{user}", { path: placeOf(owner) }, signal),
    /** Everything of a user, one JSON object a line; the last one has the type `end`. */
    async exportUser(owner: UserPlace, signal?: Signal): Promise<Blob> {
      const operation = "GET /admin/tenants/{tenant}/users/{user}/export";
      return (await open(operation, { path: placeOf(owner) }, signal)).blob();
    },
  };
}

const placeOf = ({ tenant, user }: UserPlace) => ({ tenant, user });
