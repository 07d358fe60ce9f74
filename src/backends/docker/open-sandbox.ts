// From a running container to one that can be worked in: a shell that answers, a workspace that can be written.

import type { Duplex } from "node:stream";
import { randomId } from "../../lib/random-id.ts";
import type { Sandbox } from "../ledger.ts";
import { clearStaging } from "../shell/files.ts";
import { openPerl, type PerlFiles } from "../shell/perl/client.ts";
import { PRELUDE } from "../shell/prelude.ts";
import { quote, SandboxLostError, type ScriptRunner } from "../shell/script.ts";
import type { Channel, ChannelEvents, OpenChannel } from "../shell/session.ts";
import { Shell } from "../shell/shell.ts";
import { chownSpec, shellSpec } from "./container.ts";
import { DiskWatch } from "./disk.ts";
import { type ContainerInfo, type DockerClient, EngineError } from "./engine.ts";
import type { Host } from "./host.ts";
import { labelsOf } from "./identity.ts";
import type { DockerOptions } from "./options.ts";

export interface OpenSandbox {
  readonly host: Host;
  readonly containerId: string;
  readonly shell: Shell;
  readonly helper: Helper;
  /** Where nothing else holds the workspace to its size. */
  readonly diskWatch: DiskWatch | undefined;
  /** What became of it, once it is lost. */
  lost: string | undefined;
  /** What waits fails with this. The container runs on. */
  close(reason: Error): void;
}

export interface OpenSandboxOptions {
  readonly sandbox: Sandbox;
  readonly options: DockerOptions;
  readonly containerId: string;
  /** An operation has had no answer for long. */
  readonly onSilence: () => void;
}

/** Throws `SandboxLostError` when the container goes away meanwhile. */
export async function openSandbox(
  host: Host,
  { sandbox, options, containerId, onSilence }: OpenSandboxOptions,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  const open: OpenChannel = async (events, signal) => {
    try {
      return frameChannel(await host.engine.exec(containerId, shellSpec(options), signal), events);
    } catch (error) {
      // Whoever wanted the shell finds out what became of the container.
      throw error instanceof EngineError ? new SandboxLostError(error.message, { cause: error }) : error;
    }
  };
  const { workdir } = options;
  const shell = new Shell(open, { workdir, prelude: PRELUDE, onSilence });
  try {
    await shell.prewarm(signal);
    await clearStaging(shell, workdir, signal);
    if (!(await isUsable(shell, workdir, signal))) await giveToTenant(host, { sandbox, options }, signal);
    const isCapped = await host.disk.isCapped(sandbox.id, signal);
    const diskWatch = isCapped ? undefined : new DiskWatch({ shell, workdir, bytes: options.disk });
    const helper = keepHelper(open, workdir);
    const close = (reason: Error) => {
      helper.close(reason);
      shell.close(reason);
    };
    return { host, containerId, shell, helper, diskWatch, lost: undefined, close };
  } catch (error) {
    shell.close(error instanceof Error ? error : new Error("moving in failed"));
    throw error;
  }
}

/** Its owner may have shut himself out, and could not get in to mend that. */
async function isUsable(
  shell: Pick<ScriptRunner, "runOnce">,
  workdir: string,
  signal: AbortSignal,
): Promise<boolean> {
  const place = quote(workdir);
  const script = `[ -r ${place} ] && [ -w ${place} ] && [ -x ${place} ] || chmod u+rwx ${place} || r=1`;
  const { fields } = await shell.runOnce({ script }, signal);
  return fields[0] === "0";
}

/** An image that has no workspace of its own gets one that belongs to root. */
async function giveToTenant(
  { engine, deployment }: Host,
  { sandbox, options }: Pick<OpenSandboxOptions, "sandbox" | "options">,
  signal: AbortSignal,
): Promise<void> {
  const labels = labelsOf(deployment, sandbox);
  const id = await engine.create(
    `${sandbox.id}-${randomId()}`,
    chownSpec({ options, volume: sandbox.id, labels }),
    signal,
  );
  try {
    await engine.start(id, signal);
    await engine.wait(id, signal);
  } finally {
    await engine.remove(id);
  }
}

// The file helper of a container, where its image has what it takes: opened beside everything else, so that nobody
// waits for it, and opened again when it is lost. While there is none, files are the shells' work.
/** Something that kills it again and again is left to the shells. */
const MAX_OPENED = 4;

export interface Helper {
  readonly files: PerlFiles | undefined;
  close(reason: Error): void;
}

export function keepHelper(open: OpenChannel, workdir: string): Helper {
  const closing = new AbortController();
  let files: PerlFiles | undefined;

  const keep = async () => {
    for (let opened = 0; opened < MAX_OPENED; opened++) {
      const helper = await openPerl(open, workdir, closing.signal);
      if (!helper) return;
      files = helper;
      await helper.lost;
      files = undefined;
    }
  };
  // Without it the shells do all there is to do, and find out what is wrong.
  keep().catch(() => {});

  return {
    get files() {
      return files;
    },
    close(reason) {
      closing.abort(reason);
      files?.close(reason);
    },
  };
}

// The stream of a running exec as a channel: Docker puts what a process prints into frames, each with a header of
// eight bytes that says on which of its outputs it was and how long it is.
const HEADER_BYTES = 8;
const OUTPUT = 1;
const ERROR_OUTPUT = 2;

/** The stream belongs to the channel from now on. */
export function frameChannel(stream: Duplex, events: ChannelEvents): Channel {
  let failure: Error | undefined;
  const read = unframe(events);
  stream.on("data", (bytes: Buffer) => {
    if (!read(bytes)) stream.destroy(new Error("The engine sent what is no frame."));
  });
  stream.on("end", () => stream.destroy());
  stream.on("error", (error) => {
    failure = error;
  });
  stream.on("close", () => events.onClose(failure));
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    close: () => void stream.destroy(),
  };
}

/** Returns what takes the stream's bytes, in whatever pieces they come; it returns false for what is no frame. */
function unframe({ onOutput, onErrorOutput }: ChannelEvents): (bytes: Buffer) => boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerBytes = 0;
  /** Of the frame at hand, so many bytes are to come. */
  let missing = 0;
  return (bytes) => {
    let rest = bytes;
    while (rest.length > 0) {
      if (missing === 0) {
        const taken = rest.copy(header, headerBytes, 0, HEADER_BYTES - headerBytes);
        headerBytes += taken;
        rest = rest.subarray(taken);
        if (headerBytes < HEADER_BYTES) return true;
        headerBytes = 0;
        missing = header.readUInt32BE(4);
        if (header[0] !== OUTPUT && header[0] !== ERROR_OUTPUT) return false;
        continue;
      }
      const part = rest.subarray(0, missing);
      missing -= part.length;
      rest = rest.subarray(part.length);
      if (header[0] === OUTPUT) onOutput(part);
      else onErrorOutput(part);
    }
    return true;
  };
}

// Ending all that runs in a sandbox.
/** For a shell to kill all the others. Where it gets no processor, the engine does it. */
const KILL_ALL_MS = 1500;

/** True when the container still runs, and nothing in it but what is the server's. Never throws. */
export async function killAll(
  { shell, host, containerId }: OpenSandbox,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await shell.killAll(AbortSignal.any([signal, AbortSignal.timeout(KILL_ALL_MS)]));
    return true;
  } catch {
    await host.engine.stop(containerId, signal).catch(() => {});
    return false;
  }
}

// What became of a container whose shell went away, or keeps silent, in words that fit "it was lost: …".

export interface Loss {
  readonly why: string;
  /** Whether the container is to be given up. */
  readonly isGone: boolean;
}

/** One that was paused goes on. Never throws but the signal's reason. */
export async function diagnoseLoss(
  engine: DockerClient,
  containerId: string,
  signal: AbortSignal,
): Promise<Loss> {
  try {
    const found = await engine.inspect(containerId, signal);
    if (found?.status === "running") return { why: "its shell was killed", isGone: false };
    if (found?.status !== "paused") return { why: endOf(found), isGone: true };
    await engine.unpause(containerId, signal);
    return { why: "its container was paused", isGone: false };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { why: "the Docker engine went away", isGone: true };
  }
}

function endOf(found: ContainerInfo | undefined): string {
  if (!found) return "its container was removed";
  if (found.oomKilled) return "its container ran out of memory";
  return found.exitCode === 137 ? "its container was killed" : "its container was stopped";
}
