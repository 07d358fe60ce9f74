// What a type of backend is to the pool: its options, and a driver that holds whatever it keeps running.

import { z } from "zod";
import type { Backend, BackendStatus } from "../core/backend.ts";
import type { Owner } from "../core/ids.ts";
import type { Logger } from "../lib/logger.ts";
import type { SandboxCaps, SandboxLedger } from "./ledger.ts";

/** Options that every type has. */
export const commonOptions = {
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1 to 64 characters out of A-Z a-z 0-9 . _ -")
    .optional()
    .describe("Agents that name the same backend share its files. Default: the agent's name."),
  workdir: z
    .string()
    .regex(/^(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/, "must be an absolute path, for example /workspace")
    .default("/workspace")
    .describe("Where the agent sees its files; relative paths start here."),
  timeout: z
    .number()
    .positive()
    .max(600)
    .default(120)
    .describe("Seconds a command may take when the model does not say."),
};
type CommonOptions = z.output<z.ZodObject<typeof commonOptions>>;

export interface BackendServices {
  /** The server's own folder; made when it is missing. */
  readonly dataDir: string;
  /** Lets users share a machine that does not keep them apart. */
  readonly allowSeveralUsers: boolean;
  readonly docker: DockerSettings;
  readonly sandboxes: SandboxLedger;
  readonly logger: Logger;
  /** Told when the state of a backend changes. */
  readonly onState: (place: Place, state: BackendState) => void;
}

/** What the operator says of all Docker backends. */
export interface DockerSettings {
  /** `unix:///…`, `tcp://…`; without it the environment's `DOCKER_HOST`, or the engine's usual socket. */
  readonly host: string | undefined;
  /** Marks what belongs to us on an engine that others use as well. Default: made once, kept in `dataDir`. */
  readonly deployment: string | undefined;
  /** Whether other servers use the same sandboxes: then they outlast this one, until nobody has used them. */
  readonly isShared: boolean;
  /** Sandboxes that run at once. */
  readonly caps: SandboxCaps;
  /** How often those that are not used are looked for. */
  readonly sweepMs: number;
  /** Who sees to it that a sandbox on the network `bridge` reaches nothing of the host's: we, or the operator. */
  readonly firewall: "managed" | "operator";
}

/** Whose backend, and which of theirs. All that is kept is kept under this, whatever the options. */
export interface Place {
  readonly owner: Owner;
  readonly name: string;
}

export type BackendState = Pick<BackendStatus, "status" | "error">;

/** One for each type and pool. What runs belongs to the driver, not to the backends it hands out. */
export interface BackendDriver<O> {
  /** Called when an agent is configured with it: what an earlier process has left is looked after from now on. */
  begin(): void;
  /** Safe to repeat. Begins to make it ready, and need not wait for that. Throws `backend_refused` or `backend_failed`. */
  create(options: O, place: Place): Promise<Backend>;
  /** Resolves when what was created can be used. Throws what is in the way. */
  ready(options: O, place: Place): Promise<void>;
  /** Makes nothing. */
  state(options: O, place: Place): Promise<BackendState>;
  /** Whether somebody waits for something that runs there. */
  isBusy(place: Place): boolean;
  /** Ends what runs there. Backends of this place work on: what they do next starts it again. */
  stop(place: Place): Promise<void>;
  /** Throws `unavailable` while nothing can run at all. */
  ping(): Promise<void>;
  /** Ends everything; nothing is started any more. */
  close(): Promise<void>;
}

export interface BackendDefinition<O extends CommonOptions = CommonOptions> {
  readonly type: string;
  readonly options: z.ZodType<O>;
  open(services: BackendServices): BackendDriver<O>;
}
