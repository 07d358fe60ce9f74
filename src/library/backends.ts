// The backends of a program's agents: its own ones as they are, all others out of a pool.

import type { Backend, BackendPool, BackendStatus } from "../core/backend.ts";
import { OWN_BACKEND } from "./definition.ts";

/** `own` finds a program's backend by its agent's name; `pool` is asked for everything else. */
export function withOwnBackends(own: (name: string) => Backend | undefined, pool: BackendPool): BackendPool {
  const ownOf = ({ type, name }: { type: string; name?: string }) =>
    type === OWN_BACKEND && name !== undefined ? own(name) : undefined;
  const statusOf = (name: string | undefined, { type, workdir }: Backend): BackendStatus => ({
    ...{ name: name ?? "default", type, workdir, status: "running" },
  });
  const orOwn =
    (method: "status" | "start" | "stop"): BackendPool["status"] =>
    async (owner, config) => {
      const backend = ownOf(config);
      return backend ? statusOf(config.name, backend) : pool[method](owner, config);
    };
  return {
    get: async (owner, config) => ownOf(config) ?? pool.get(owner, config),
    status: orOwn("status"),
    start: orOwn("start"),
    stop: orOwn("stop"),
    ping: () => pool.ping(),
    close: () => pool.close(),
  };
}
