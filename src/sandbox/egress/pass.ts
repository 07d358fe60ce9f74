// The rights of a client of the proxy, and where it wants to go.

import type { RefusedHost } from "../../agent/core/backend.ts";
import type { Allows } from "./allowed-hosts.ts";

/** The rights of a client of the proxy. */
export interface Pass {
  readonly allows: Allows;
  /** `target` is `host:port`, at most 300 characters without control characters. */
  onRefused(target: string, reason: RefusedHost["reason"]): void;
}

export interface Target {
  readonly host: string;
  readonly port: number;
}

export const textOf = ({ host, port }: Target) => `${host}:${port}`;
