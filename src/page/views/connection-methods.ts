// The connections that a view shows, either the user's or a tenant's.

import type { Body } from "../../client/client.ts";
import { client, may } from "../session.ts";

export interface ConnectionMethods extends Pick<typeof client.connections, "list"> {
  readonly put: (id: string, spec: Body<"PUT /me/connections/{connection_id}">) => Promise<unknown>;
  readonly authorize: (id: string) => ReturnType<typeof client.connections.authorize>;
  readonly delete: (id: string) => ReturnType<typeof client.connections.delete>;
  /** Returns whether the user may change the connections. */
  readonly mayChange: () => boolean;
  readonly isTenant: boolean;
}

export const ownConnections = (): ConnectionMethods => ({
  ...client.connections,
  mayChange: () => may("run"),
  isTenant: false,
});

/** Without a name, uses the admin's tenant. */
export function tenantConnections(name: string | undefined): ConnectionMethods {
  const { connections } = client.admin;
  const tenant = name === undefined ? {} : { tenant: name };
  return {
    list: (query, signal) => connections.list({ ...query, ...tenant }, signal),
    put: (id, spec) => connections.put(id, spec, tenant),
    authorize: (id) => connections.authorize(id, tenant),
    delete: (id) => connections.delete(id, tenant),
    mayChange: () => true,
    isTenant: true,
  };
}
