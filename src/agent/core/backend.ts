// The port to an agent's files and commands. The backend resolves every path, including links, inside its workspace. It refuses
// a path that leads out of the workspace with `backend_refused`.

import { z } from "zod";
import type { Owner } from "../../protocol/ids.ts";
import type { Stream } from "./stream.ts";

/** A backend from the configuration. `type` selects the implementation, which defines all other options. */
export interface BackendConfig {
  readonly type: string;
  /** Agents with the same backend name share files. Default: the agent's name. */
  readonly name?: string;
  readonly [option: string]: unknown;
}

export interface FileStat {
  /** The absolute path as the agent sees it, with links resolved. */
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  /** Bytes. */
  readonly size: number;
  /** The time of the last change, in ISO 8601. */
  readonly modified_at: string;
}

export interface ExecOptions {
  readonly signal: AbortSignal;
  /** Kills the command and every process that it started after this many milliseconds. */
  readonly timeoutMs: number;
  /** Variables to add to the backend's environment. They override variables with the same names. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The hosts that the command can reach in addition to the backend's hosts, if the backend limits hosts. */
  readonly hosts?: readonly string[];
}

/** A piece of the command's output as UTF-8 text. The backend yields each piece as soon as it arrives. */
export interface ExecOutput {
  readonly text: string;
}

export interface ExecResult {
  /**
   * The standard output and standard error, in the order in which they arrived. If they exceed the limit, the
   * middle is missing.
   */
  readonly output: string;
  /** The number of characters missing from `output`. */
  readonly omitted: number;
  /** Null when a signal killed the command. */
  readonly exitCode: number | null;
  readonly signal?: string;
  /** The reason why the command did not finish on its own, or why some of its output was not read. */
  readonly ended?: CommandEnd;
  /** How the sandbox was lost, such as "its container was removed". */
  readonly detail?: string;
  /** The hosts that the command was not allowed to reach, without duplicates. The list is short. */
  readonly refused?: readonly RefusedHost[];
}

export interface RefusedHost {
  /** `host:port`. */
  readonly target: string;
  /**
   * `host`: the host is not allowed. `address`: the host has a private address. `name`: the connection was not TLS for
   * this host, or the request was for another host. `placeholder`: the request contained the placeholder of a secret
   * that this host may not receive. `connection`: the secret that the request needs is currently unavailable.
   */
  readonly reason: "host" | "address" | "name" | "placeholder" | "connection";
}

export type CommandEnd =
  /** Skein killed the command and every process that it had started. */
  | "timeout"
  | "cancelled"
  | "output-limit"
  | "disk-limit"
  /** Out of memory: the system killed the command or one of its processes. */
  | "oom"
  /** The command exited, but its last output was lost. */
  | "output-lost"
  /** The sandbox stopped during the command. Its outcome is unknown. */
  | "sandbox-lost";

export interface GrepMatch {
  readonly file: string;
  /** The line number, from 1. */
  readonly line: number;
  readonly text: string;
}

export interface SearchMatches<T> {
  readonly matches: readonly T[];
  /** True when more matches exist than the limit allows. */
  readonly truncated: boolean;
  /** The number of files that were not searched because they are binary, too large or unreadable. */
  readonly skipped?: number;
}

export interface ByteRange {
  /** The first byte to read, counted from 0. */
  readonly offset?: number;
  readonly length?: number;
}

export interface Backend {
  /** The kind of backend, shown in its status: `local` or `docker`. */
  readonly type: string;
  /** The workspace as the agent sees it. Relative paths start here. */
  readonly workdir: string;

  /**
   * Runs a command line in a shell, in the workspace. Yields output as it arrives. Does not throw when the
   * command fails.
   */
  exec(command: string, options: ExecOptions): Stream<ExecResult, ExecOutput>;

  /**
   * This and all methods below throw `not_found` for a missing path and `backend_refused` for a path outside
   * the workspace.
   */
  stat(path: string, signal: AbortSignal): Promise<FileStat>;
  /** Reads the bytes of a file on demand. Refuses a folder. */
  read(path: string, range: ByteRange, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Writes a file atomically and creates its parent folders. Returns the number of bytes written. */
  write(path: string, data: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>;
  /**
   * Replaces the first exact occurrence of `oldText`. If `oldText` does not occur exactly, replaces the first
   * occurrence that differs only in line endings. Converts the line endings of `newText` to those of the
   * replaced text. Throws `invalid_request` when the file does not contain `oldText`.
   */
  edit(path: string, oldText: string, newText: string, signal: AbortSignal): Promise<void>;
  /** Returns the direct entries of a folder, sorted by name. */
  list(path: string, signal: AbortSignal): Promise<FileStat[]>;
  /**
   * Returns the absolute paths of the files below `path` that match `pattern` (`**`, `*`, `?`, `[…]`,
   * `{a,b}`). A pattern without `/` is compared with file names only.
   */
  glob(pattern: string, path: string, signal: AbortSignal): Promise<SearchMatches<string>>;
  /**
   * Returns the lines below `path` that match an RE2 expression, in files that match `include`. The paths are
   * absolute.
   */
  grep(
    pattern: string,
    path: string,
    include: string | undefined,
    signal: AbortSignal,
  ): Promise<SearchMatches<GrepMatch>>;
  /** Removes a file, or a folder with all its contents. */
  remove(path: string, signal: AbortSignal): Promise<void>;
}

export const BackendStatus = z
  .object({
    name: z.string(),
    type: z.string(),
    status: z.enum(["stopped", "starting", "running", "error"]),
    workdir: z.string(),
    error: z.string().optional(),
  })
  .meta({ id: "BackendStatus" });
export type BackendStatus = z.infer<typeof BackendStatus>;

/** Creates one backend per owner and `config.name`, on first use. The process closes the pool. */
export interface BackendPool {
  /**
   * Throws `backend_refused` when the owner may not have a backend, or `backend_failed` when it cannot be
   * created. It may return before the backend has started. In that case, operations wait until the backend
   * has started, and throw if it fails to start.
   */
  get(owner: Owner, config: BackendConfig): Promise<Backend>;
  /** Does not create a backend. */
  status(owner: Owner, config: BackendConfig): Promise<BackendStatus>;
  /** Resolves when the backend is ready for use. */
  start(owner: Owner, config: BackendConfig): Promise<BackendStatus>;
  /** Ends the backend's processes and keeps its files. */
  stop(owner: Owner, config: BackendConfig): Promise<BackendStatus>;
  /**
   * Deletes all workspaces of the owner with their files and returns how many it deleted. Stops the backends
   * of plugins without deleting anything.
   */
  erase(owner: Owner): Promise<number>;
  /** Throws `unavailable` when a host of a configured backend cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
