// The port to where an agent's files and commands live. Every path is resolved by the backend, inside its
// workspace: a path that leads out of it is refused (`backend_refused`), links included.

import { z } from "zod";
import type { Owner } from "../../protocol/ids.ts";
import type { Stream } from "./stream.ts";

/** A backend as configured: `type` names who makes it, the rest is that type's own. */
export interface BackendConfig {
  readonly type: string;
  /** Agents with the same backend name share files. Default: the agent's name. */
  readonly name?: string;
  readonly [option: string]: unknown;
}

export interface FileStat {
  /** Absolute, as the agent sees it, with links resolved. */
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  /** Bytes. */
  readonly size: number;
  /** ISO 8601. */
  readonly modified_at: string;
}

export interface ExecOptions {
  readonly signal: AbortSignal;
  /** After this the command and everything it started is killed. */
  readonly timeoutMs: number;
  /** Variables that the command has besides, or with other values than, those of the backend. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Output as it comes, decoded as UTF-8. */
export interface ExecOutput {
  readonly text: string;
}

export interface ExecResult {
  /** Standard output and error, in the order they came; the middle is left out past the cap. */
  readonly output: string;
  /** Characters left out of `output`. */
  readonly omitted: number;
  /** Null when it was killed by a signal. */
  readonly exitCode: number | null;
  readonly signal?: string;
  /** Why it did not end by itself with all its output read. */
  readonly ended?: CommandEnd;
  /** How the sandbox was lost: "its container was removed". */
  readonly detail?: string;
}

export type CommandEnd =
  /** Killed by Skein, with every process it had started. */
  | "timeout"
  | "cancelled"
  | "output-limit"
  | "disk-limit"
  /** Out of memory: the system killed it, or a part of it. */
  | "oom"
  /** It ended, but its last output is lost. */
  | "output-lost"
  /** The sandbox stopped during the command. Its outcome is unknown. */
  | "sandbox-lost";

export interface GrepMatch {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

export interface SearchMatches<T> {
  readonly matches: readonly T[];
  /** True when there were more than the limit. */
  readonly truncated: boolean;
  /** Number of files that were not searched: not text, too large or not readable. */
  readonly skipped?: number;
}

export interface ByteRange {
  /** First byte, from 0. */
  readonly offset?: number;
  readonly length?: number;
}

export interface Backend {
  /** What kind it is, for status: `local`, `docker`. */
  readonly type: string;
  /** The workspace as the agent sees it; relative paths start here. */
  readonly workdir: string;

  /** Runs a command line in a shell, in the workspace. Yields output as it comes. Never throws for what the command does. */
  exec(command: string, options: ExecOptions): Stream<ExecResult, ExecOutput>;

  /** Throws `not_found` for a missing path, `backend_refused` for one outside, for every method below. */
  stat(path: string, signal: AbortSignal): Promise<FileStat>;
  /** The bytes of a file, read as they are asked for. A folder is refused. */
  read(path: string, range: ByteRange, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Creates parent folders; the file appears whole or not at all. Returns bytes written. */
  write(path: string, data: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>;
  /**
   * Replaces the first exact occurrence, else the first that differs in line ends only; `newText` gets the line ends of the place.
   * Throws `invalid_request` when `oldText` is not in the file.
   */
  edit(path: string, oldText: string, newText: string, signal: AbortSignal): Promise<void>;
  /** A folder's own entries, by name. */
  list(path: string, signal: AbortSignal): Promise<FileStat[]>;
  /** Files below `path` whose path matches (`**`, `*`, `?`, `[…]`, `{a,b}`); a pattern without `/` is held against names. Absolute. */
  glob(pattern: string, path: string, signal: AbortSignal): Promise<SearchMatches<string>>;
  /** Lines below `path` that match an RE2 expression, in files whose path matches `include`. Files are absolute. */
  grep(
    pattern: string,
    path: string,
    include: string | undefined,
    signal: AbortSignal,
  ): Promise<SearchMatches<GrepMatch>>;
  /** Removes a file, or a folder with everything in it. */
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

/** Hands out backends: one for each owner and `config.name`, made on first use. Closed by the process. */
export interface BackendPool {
  /**
   * Throws `backend_refused` when this owner may not have one, `backend_failed` when it cannot be made. May return
   * while the backend still starts; operations then wait, and throw if the start fails.
   */
  get(owner: Owner, config: BackendConfig): Promise<Backend>;
  /** Makes nothing. */
  status(owner: Owner, config: BackendConfig): Promise<BackendStatus>;
  /** Resolves when it can be used. */
  start(owner: Owner, config: BackendConfig): Promise<BackendStatus>;
  /** Ends its processes; its files stay. */
  stop(owner: Owner, config: BackendConfig): Promise<BackendStatus>;
  /** Deletes every workspace of the owner, with its files. Returns how many. Those of plugins are only stopped. */
  erase(owner: Owner): Promise<number>;
  /** Throws `unavailable` while a host of the configured backends cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
