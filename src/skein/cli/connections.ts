// `skein connections`: lists, stores and deletes the connections of the key's user on a running server.

import { AppError } from "../../agent/core/errors.ts";
import { type Body, type Client, createClient } from "../../client/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { tableOf } from "./table.ts";
import { t } from "./texts.ts";

interface Server {
  readonly url: string;
  readonly key: string | undefined;
}

interface PutOptions {
  /** The address of an MCP server. */
  readonly address?: string | undefined;
  /** The name of a variable. */
  readonly variable?: string | undefined;
  readonly hosts?: string | undefined;
}

type Spec = Body<"PUT /me/connections/{connection_id}">;

const PAGE = 100;

function methodsOf({ url, key }: Server): Client["connections"] {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return createClient({ baseUrl: url, headers }).connections;
}

export async function listConnections(server: Server): Promise<string> {
  const { list } = methodsOf(server);
  const { states, head } = t().connections;
  const rows: string[][] = [];
  const others: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE, ...omitUndefined({ cursor }) });
    for (const { id, type, ended, expires_at = "", last_used_at = "", ...each } of page.items) {
      const state = ended ? `${states.ended}: ${ended.reason}` : states.connected;
      const { mcp_server_url, secret_name = "" } = each;
      rows.push([id, type, mcp_server_url ?? secret_name, expires_at, last_used_at, state]);
    }
    for (const { id, mcp_server_url } of page.not_connected ?? [])
      others.push([id, "mcp_oauth", mcp_server_url, "", "", states.notConnected]);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return tableOf([head, ...rows, ...others]);
}

/**
 * Creates or replaces a connection. Its token or value is piped in as `piped`, because other users of the machine can
 * see the command line.
 */
export async function putConnection(
  server: Server,
  id: string,
  options: PutOptions,
  piped: string | undefined,
): Promise<string> {
  if (piped === undefined || piped.trim() === "")
    throw new AppError("invalid_request", t().connections.noSecret);
  await methodsOf(server).put(id, specOf(options, piped));
  return t().connections.stored(id);
}

/** The server checks each field. */
function specOf({ address, variable, hosts }: PutOptions, piped: string): Spec {
  if ((address === undefined) === (variable === undefined))
    throw new AppError("invalid_request", t().connections.oneOf);
  if (address !== undefined) return { type: "static_bearer", mcp_server_url: address, token: piped.trim() };
  const networking =
    hosts === undefined
      ? ({ type: "unrestricted" } as const)
      : ({ type: "limited", allowed_hosts: hosts.split(",") } as const);
  const secret_value = piped.replace(/\r?\n$/, "");
  return { type: "environment_variable", secret_name: variable ?? "", secret_value, networking };
}

/** The output is the address that the user opens in a browser. */
export async function authorizeConnection(server: Server, id: string) {
  const { url, expires_at } = await methodsOf(server).authorize(id);
  return { output: url, note: t().connections.open(expires_at) };
}

/** `note` is set if the tokens may still be valid elsewhere. */
export async function deleteConnection(server: Server, id: string) {
  const { is_revoked } = await methodsOf(server).delete(id);
  const { deleted, notRevoked } = t().connections;
  return { output: deleted(id), ...(is_revoked ? {} : { note: notRevoked }) };
}
