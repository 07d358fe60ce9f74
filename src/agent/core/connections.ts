// The port to credentials of users and tenants, for tools that call other services on their behalf.

/** Owner of a connection: a user or, without `user`, a tenant. */
export interface ConnectionKeeper {
  readonly tenant: string;
  readonly user?: string;
}

export type ConnectionAccess =
  | {
      readonly state: "open";
      readonly connection: {
        /** The only address that may receive the value. */
        readonly mcp_server_url?: string | undefined;
        /** The hosts that may receive the value, if there is no such address. */
        readonly networking?:
          | { readonly type: "unrestricted" }
          | { readonly type: "limited"; readonly allowed_hosts: readonly string[] }
          | undefined;
      };
      readonly value: string;
      /** Pass it as `refused` if the receiver refuses the value. */
      readonly generation: string;
    }
  /** There is no such connection. */
  | { readonly state: "absent" }
  /** The account must be connected again. `reason` completes "the connection ended, because …". */
  | { readonly state: "ended"; readonly reason: string }
  /** The issuer cannot be reached now. `reason` completes "the token could not be renewed: …". */
  | { readonly state: "failed"; readonly reason: string };

export interface Connections {
  /**
   * Returns the current value of a connection. Renews an access token that is about to expire, or that has the generation `refused`.
   * Throws the reason of `signal`, or an error of the store.
   */
  access(
    keeper: ConnectionKeeper,
    id: string,
    options: { readonly refused?: string | undefined; readonly signal: AbortSignal },
  ): Promise<ConnectionAccess>;
  /** Notes in the audit trail that the value is sent to its receiver. Returns at once and does not throw. */
  used(keeper: ConnectionKeeper, id: string): void;
  /**
   * The address at which a user connects their account at an MCP server. `lifetimeMs`: how long it can be used. Undefined if the server
   * runs no OAuth flow for it. Throws an error of the store.
   */
  addressFor?(
    keeper: Required<ConnectionKeeper>,
    server: string,
    options: { readonly scopes?: readonly string[]; readonly lifetimeMs?: number | undefined },
  ): Promise<string | undefined>;
}
