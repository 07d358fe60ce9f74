// The rights of a proxy client, and the target that it wants to reach.

import type { RefusedHost } from "../../agent/core/backend.ts";
import type { Allows } from "./allowed-hosts.ts";

/** The rights of a proxy client. */
export interface Pass {
  readonly allows: Allows;
  /**
   * Called for each refused target. `target` is `host:port` with at most 300 characters and no control
   * characters.
   */
  onRefused(target: string, reason: RefusedHost["reason"]): void;
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export const textOf = ({ host, port }: HostPort) => `${host}:${port}`;
