// Defines a backend type for the pool: its options, and a driver that owns its processes and containers.

import { z } from "zod";
import type { Backend, BackendStatus } from "../agent/core/backend.ts";
import type { Connections } from "../agent/core/connections.ts";
import type { Logger } from "../lib/logger.ts";
import type { TlsFiles } from "../lib/tls-files.ts";
import { Seconds } from "../lib/units.ts";
import type { Owner } from "../protocol/ids.ts";
import type { DialOptions } from "./egress/dial.ts";
import type { SandboxLedger } from "./ledger.ts";
import type { SandboxCaps } from "./sandbox-caps.ts";

/** The options that all backend types share. */
export const commonOptions = {
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1 to 64 characters from A-Z, a-z, 0-9, ., _ and -")
    .optional()
    .describe(
      "Name of the backend. Agents with the same name share files; each user has separate files. Default: the agent's name.",
    ),
  workdir: z
    .string()
    .regex(/^(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/, "must be an absolute path, for example /workspace")
    .default("/workspace")
    .describe("Path where the agent sees its files. Relative paths start there."),
  timeout: Seconds(600).prefault(120).describe("Maximum duration of a command if the model sets no limit."),
};
type CommonOptions = z.output<z.ZodObject<typeof commonOptions>>;

export interface BackendServices {
  /** The server's data folder. Drivers create it if it is missing. */
  readonly dataDir: string;
  /** Allows several users on a machine that does not isolate them from each other. */
  readonly allowSeveralUsers: boolean;
  /** The processes that share this machine. Defaults to this process alone. */
  readonly machine?: SharedMachine;
  readonly docker: DockerSettings;
  readonly sandboxes: SandboxLedger;
  /** Provides secrets for the requests of sandboxes. Undefined without a vault. */
  readonly connections?: Connections | undefined;
  readonly logger: Logger;
  /** Called when the state of a backend changes. */
  readonly onState: (place: BackendKey, state: BackendState) => void;
}

/** The processes of one server that share this machine. */
export interface SharedMachine {
  /** Changes each time the server starts. */
  readonly id: string;
  /**
   * True if `owner` is the only user of this machine. The only user is the first owner that any of these processes
   * asked about.
   */
  isOneUser(owner: string): Promise<boolean>;
}

/** The operator's settings for all Docker backends. */
export interface DockerSettings {
  /** At least one. A sandbox stays on the engine that created it. */
  readonly engines: readonly EngineSettings[];
  /** Marks this server's containers on a shared engine. By default, a name is created once and stored in `dataDir`. */
  readonly deployment: string | undefined;
  /**
   * True if other servers use the same sandboxes. Sandboxes then outlive this server and expire when they are
   * unused.
   */
  readonly isShared: boolean;
  /** The limits on running sandboxes across all engines. */
  readonly caps: Omit<SandboxCaps, "engine">;
  /** The number of milliseconds between two checks for unused sandboxes. */
  readonly sweepMs: number;
  /**
   * Who blocks access to the host and private addresses for sandboxes on the network `bridge`: this server or the
   * operator.
   */
  readonly firewall: "managed" | "operator";
  /** How to connect to the hosts in `network.allow`. By default, only public addresses can be reached. */
  readonly egress: DialOptions;
}

export interface EngineSettings {
  readonly name: string;
  /**
   * `unix:///…` or `tcp://…`. Defaults to `DOCKER_HOST` from the environment, or else to the engine's usual
   * socket.
   */
  readonly host?: string | undefined;
  readonly tls?: TlsFiles | undefined;
  /** If true, the engine accepts no new sandboxes. */
  readonly drain?: boolean;
  /** The maximum number of sandboxes that run at once on this engine. Defaults to the deployment's limit. */
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
  /** Throws `unavailable` if the engine cannot be used. */
  ping(): Promise<void>;
}

/**
 * Each pool has one driver per backend type. The driver owns processes and containers. The backends that it returns own
 * neither of these.
 */
export interface BackendDriver<O> {
  /**
   * Called when an agent uses this type. From then on, the driver also manages everything that earlier processes
   * left running.
   */
  begin(): void;
  /** Starts the backend and may return before it is ready. Safe to repeat. Throws `backend_refused` or `backend_failed`. */
  create(options: O, place: BackendKey): Promise<Backend>;
  /** Resolves when the backend is ready. Throws the reason if the backend cannot be used. */
  ready(options: O, place: BackendKey): Promise<void>;
  /** Returns the current state without creating anything. */
  state(options: O, place: BackendKey): Promise<BackendState>;
  /** True if a caller is waiting for an operation in this backend. */
  isBusy(place: BackendKey): boolean;
  /**
   * Ends the backend's processes. Its `Backend` objects stay usable, and their next operation starts it again.
   */
  stop(place: BackendKey): Promise<void>;
  /** Deletes all of the owner's data, even of running backends. Returns the number of deleted workspaces. */
  erase(owner: Owner): Promise<number>;
  /** Throws `unavailable` if no backend can run. */
  ping(): Promise<void>;
  /** The engines to check, for a type that runs on more than one engine. */
  readonly engines?: readonly EngineCheck[];
  /** Ends all processes and refuses later calls. */
  close(): Promise<void>;
}

export interface BackendDefinition<O extends CommonOptions = CommonOptions> {
  readonly type: string;
  readonly options: z.ZodType<O>;
  open(services: BackendServices): BackendDriver<O>;
}
