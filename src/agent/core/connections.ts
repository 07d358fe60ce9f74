// The port to credentials of users and tenants, for tools that call other services on their behalf.

/** The owner of a connection: a user or, without `user`, a tenant. */
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
        /** The hosts that may receive the value if no such address is set. */
        readonly networking?:
          | { readonly type: "unrestricted" }
          | { readonly type: "limited"; readonly allowed_hosts: readonly string[] }
          | undefined;
      };
      readonly value: string;
      /** Pass this value as `refused` if the receiver refuses the value. */
      readonly generation: string;
    }
  /** The connection does not exist. */
  | { readonly state: "absent" }
  /** The user must reconnect the account. `reason` completes "the connection ended, because …". */
  | { readonly state: "ended"; readonly reason: string }
  /** The issuer is currently unreachable. `reason` completes "the token could not be renewed: …". */
  | { readonly state: "failed"; readonly reason: string };

export interface Connections {
  /**
   * Returns the current value of a connection. Renews an access token that is about to expire, or that has the generation
   * `refused`. Throws the reason of `signal`, or the store's error.
   */
  access(
    keeper: ConnectionKeeper,
    id: string,
    options: { readonly refused?: string | undefined; readonly signal: AbortSignal },
  ): Promise<ConnectionAccess>;
  /**
   * Records in the audit trail that the value was sent to its receiver. Returns at once and does not throw.
   */
  used(keeper: ConnectionKeeper, id: string): void;
  /**
   * Returns the URL where a user connects an account with an MCP server. The URL is valid for `lifetimeMs`. Returns
   * undefined if the server runs no OAuth flow for that MCP server. Throws the store's errors.
   */
  addressFor?(
    keeper: Required<ConnectionKeeper>,
    server: string,
    options: { readonly scopes?: readonly string[]; readonly lifetimeMs?: number | undefined },
  ): Promise<string | undefined>;
}
