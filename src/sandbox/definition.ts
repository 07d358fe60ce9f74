// A type of backend as the pool sees it: its options, and a driver that owns its processes and containers.

import { z } from "zod";
import type { Backend, BackendStatus } from "../agent/core/backend.ts";
import type { Logger } from "../lib/logger.ts";
import type { TlsFiles } from "../lib/tls-files.ts";
import { Seconds } from "../lib/units.ts";
import type { Owner } from "../protocol/ids.ts";
import type { SandboxLedger } from "./ledger.ts";
import type { SandboxCaps } from "./sandbox-caps.ts";

/** Options that every type has. */
export const commonOptions = {
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1 to 64 characters out of A-Z a-z 0-9 . _ -")
    .optional()
    .describe(
      "Name of the backend. Agents with the same name share files; each user has files of their own. Default: the agent's name.",
    ),
  workdir: z
    .string()
    .regex(/^(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/, "must be an absolute path, for example /workspace")
    .default("/workspace")
    .describe("Path under which the agent sees its files. Relative paths start there."),
  timeout: Seconds(600).prefault(120).describe("Time that a command may take if the model sets no limit."),
};
type CommonOptions = z.output<z.ZodObject<typeof commonOptions>>;

export interface BackendServices {
  /** The server's own folder; created if missing. */
  readonly dataDir: string;
  /** Lets several users share a machine that does not isolate them. */
  readonly allowSeveralUsers: boolean;
  /** Default: this process alone. */
  readonly machine?: SharedMachine;
  readonly docker: DockerSettings;
  readonly sandboxes: SandboxLedger;
  readonly logger: Logger;
  /** Called when the state of a backend changes. */
  readonly onState: (place: BackendKey, state: BackendState) => void;
}

/** The processes of one server that use this machine together. */
export interface SharedMachine {
  /** Another one at each start of the server. */
  readonly id: string;
  /** Whether this is the one user of the machine: the first whom any of them asked for. */
  isOneUser(owner: string): Promise<boolean>;
}

/** The operator's settings for all Docker backends. */
export interface DockerSettings {
  /** One at least; a sandbox stays on the one where it was made. */
  readonly engines: readonly EngineSettings[];
  /** Marks this server's containers on a shared engine. Default: created once and stored in `dataDir`. */
  readonly deployment: string | undefined;
  /** Whether other servers use the same sandboxes: then they outlive this one and expire when unused. */
  readonly isShared: boolean;
  /** Limits of running sandboxes on all engines. */
  readonly caps: Omit<SandboxCaps, "engine">;
  /** How often to check for unused sandboxes. */
  readonly sweepMs: number;
  /** Who keeps sandboxes on the network `bridge` from the host and private addresses: this server or the operator. */
  readonly firewall: "managed" | "operator";
}

export interface EngineSettings {
  readonly name: string;
  /** `unix:///…`, `tcp://…`; without it the environment's `DOCKER_HOST`, or the engine's usual socket. */
  readonly host?: string | undefined;
  readonly tls?: TlsFiles | undefined;
  /** Takes no new sandboxes. */
  readonly drain?: boolean;
  /** Running ones at once; without it the limit of the deployment. */
  readonly sandboxes?: number | undefined;
}

/** Identifies a backend by owner and name, independent of its options. */
export interface BackendKey {
  readonly owner: Owner;
  readonly name: string;
}

export type BackendState = Pick<BackendStatus, "status" | "error">;

export interface EngineCheck {
  readonly name: string;
  /** Throws `unavailable` while it cannot be used. */
  ping(): Promise<void>;
}

/** One per type and pool. Processes and containers belong to the driver, not to the backends it returns. */
export interface BackendDriver<O> {
  /** Called when an agent uses this type: from now on the driver manages what earlier processes left running. */
  begin(): void;
  /** Safe to repeat. Starts it, and may return before it is ready. Throws `backend_refused` or `backend_failed`. */
  create(options: O, place: BackendKey): Promise<Backend>;
  /** Resolves when it can be used. Throws the reason why it cannot. */
  ready(options: O, place: BackendKey): Promise<void>;
  /** Creates nothing. */
  state(options: O, place: BackendKey): Promise<BackendState>;
  /** Whether a caller waits for something that runs there. */
  isBusy(place: BackendKey): boolean;
  /** Ends its processes. Its backends stay usable: their next operation starts it again. */
  stop(place: BackendKey): Promise<void>;
  /** Deletes what it keeps for the owner, running or not. Returns how many workspaces. */
  erase(owner: Owner): Promise<number>;
  /** Throws `unavailable` while nothing can run. */
  ping(): Promise<void>;
  /** Where there are several of what it runs on: each of them. */
  readonly engines?: readonly EngineCheck[];
  /** Ends everything and refuses later calls. */
  close(): Promise<void>;
}

export interface BackendDefinition<O extends CommonOptions = CommonOptions> {
  readonly type: string;
  readonly options: z.ZodType<O>;
  open(services: BackendServices): BackendDriver<O>;
}
