// Methods for connections: a user's own, and a tenant's for its admins.

import type { Body, Query, Requests } from "./requests.ts";
import type { ChangeOptions } from "./webhook-methods.ts";

type Signal = AbortSignal | undefined;
type Spec = Body<"PUT /me/connections/{connection_id}">;
type Tenant = Query<"GET /admin/connections/{connection_id}">;

const at = (connection_id: string) => ({ path: { connection_id } });
const ifMatch = ({ version }: ChangeOptions) =>
  version === undefined ? {} : { headers: { "if-match": version } };

export function connectionMethods({ call }: Pick<Requests, "call">) {
  return {
    /** Lists your connections, sorted by id. No response contains a token. */
    list: (query: Query<"GET /me/connections"> = {}, signal?: Signal) =>
      call("GET /me/connections", { query }, signal),
    get: (id: string, signal?: Signal) => call("GET /me/connections/{connection_id}", at(id), signal),
    /** Creates or replaces a connection. */
    put: (id: string, connection: Spec, options: ChangeOptions = {}, signal?: Signal) =>
      call("PUT /me/connections/{connection_id}", { ...at(id), body: connection }, signal, ifMatch(options)),
    /** Deletes a connection and revokes its tokens. */
    delete: (id: string, options: ChangeOptions = {}, signal?: Signal) =>
      call("DELETE /me/connections/{connection_id}", at(id), signal, ifMatch(options)),
    /** Begins the OAuth flow for an MCP server. A person must open the `url` of the response in a browser. */
    authorize: (id: string, signal?: Signal) =>
      call("POST /me/connections/{connection_id}/authorize", at(id), signal),
  };
}

/** The same methods for a tenant's connections. An operator can name the tenant. */
export function adminConnectionMethods({ call }: Pick<Requests, "call">) {
  return {
    list: (query: Query<"GET /admin/connections"> = {}, signal?: Signal) =>
      call("GET /admin/connections", { query }, signal),
    get: (id: string, query: Tenant = {}, signal?: Signal) =>
      call("GET /admin/connections/{connection_id}", { ...at(id), query }, signal),
    put: (
      id: string,
      connection: Spec,
      { version, ...query }: ChangeOptions & Tenant = {},
      signal?: Signal,
    ) =>
      call(
        "PUT /admin/connections/{connection_id}",
        { ...at(id), body: connection, query },
        signal,
        ifMatch({ version }),
      ),
    delete: (id: string, { version, ...query }: ChangeOptions & Tenant = {}, signal?: Signal) =>
      call("DELETE /admin/connections/{connection_id}", { ...at(id), query }, signal, ifMatch({ version })),
    authorize: (id: string, query: Tenant = {}, signal?: Signal) =>
      call("POST /admin/connections/{connection_id}/authorize", { ...at(id), query }, signal),
  };
}
