// Opens a running container for work, which requires a shell that answers, a writable workspace and a file helper.
// Also explains why a container was lost.

import type { Duplex } from "node:stream";
import { randomId } from "../../lib/random-id.ts";
import { openSecrets } from "../egress/secrets.ts";
import { writeAuthority } from "../shell/authority-files.ts";
import { clearStaging } from "../shell/files.ts";
import { openPerl, type PerlFiles } from "../shell/perl/client.ts";
import { PRELUDE } from "../shell/prelude.ts";
import { quote, SandboxLostError, type ScriptRunner } from "../shell/script.ts";
import type { Channel, ChannelEvents, OpenChannel } from "../shell/session.ts";
import { Shell } from "../shell/shell.ts";
import { chownSpec, RELAY_SHELL, shellSpec } from "./container.ts";
import { DiskWatch } from "./disk.ts";
import { type Egress, type EgressOptions, openEgress } from "./egress.ts";
import type { ContainerInfo, DockerClient, ExecSpec } from "./engine.ts";
import { EngineError } from "./engine-error.ts";
import type { UnplacedSandbox } from "./engines.ts";
import type { Host } from "./host.ts";
import { labelsOf } from "./identity.ts";
import type { DockerOptions } from "./options.ts";

export interface OpenSandbox {
  readonly host: Host;
  readonly containerId: string;
  readonly shell: Shell;
  readonly helper: Helper;
  /** Present if the sandbox may reach only some hosts. */
  readonly egress: Egress | undefined;
  /** Present if nothing else limits the workspace's size. */
  readonly diskWatch: DiskWatch | undefined;
  /** The reason why the sandbox was lost. Undefined until then. */
  lost: string | undefined;
  /** Closes the sandbox. Waiting calls throw `reason`. The container keeps running. */
  close(reason: Error): void;
}

export interface OpenSandboxOptions {
  readonly sandbox: UnplacedSandbox;
  readonly options: DockerOptions;
  readonly containerId: string;
  /** Called when a shell has not answered for 1.5 s. */
  readonly onSilence: () => void;
}

/** Opens the sandbox. Throws `SandboxLostError` if the container ends in the meantime. */
export async function openSandbox(
  host: Host,
  { sandbox, options, containerId, onSilence }: OpenSandboxOptions,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  const openAs =
    (spec: ExecSpec): OpenChannel =>
    async (events, signal) => {
      try {
        return frameChannel(await host.engine.exec(containerId, spec, signal), events);
      } catch (error) {
        // The caller determines why the container ended.
        throw error instanceof EngineError ? new SandboxLostError(error.message, { cause: error }) : error;
      }
    };
  const open = openAs(shellSpec(options));
  const { workdir, network } = options;
  const shell = new Shell(open, { workdir, prelude: PRELUDE, onSilence });
  try {
    await shell.prewarm(signal);
    await clearStaging(shell, workdir, signal);
    if (!(await isUsable(shell, workdir, signal))) await giveToTenant(host, { sandbox, options }, signal);
    const isCapped = await host.disk.isCapped(sandbox.id, signal);
    const diskWatch = isCapped ? undefined : new DiskWatch({ shell, workdir, bytes: options.disk });
    const egress =
      typeof network === "string"
        ? undefined
        : await openEgress(
            {
              ...{ hosts: network.allow, dialing: host.egress, open: openAs(RELAY_SHELL) },
              ...(await secretsFor(host, { sandbox, options }, shell, signal)),
            },
            signal,
          );
    const helper = keepHelper(open, workdir);
    const close = (reason: Error) => {
      egress?.close();
      helper.close(reason);
      shell.close(reason);
    };
    return { host, containerId, shell, helper, egress, diskWatch, lost: undefined, close };
  } catch (error) {
    shell.close(error instanceof Error ? error : new Error("the sandbox could not be opened"));
    throw error;
  }
}

/** Returns the secrets in the sandbox's variables, and the variables for its commands. */
async function secretsFor(
  { connections, logger }: Host,
  { sandbox: { id, owner }, options: { env, workdir } }: Pick<OpenSandboxOptions, "sandbox" | "options">,
  shell: Pick<ScriptRunner, "runOnce">,
  signal: AbortSignal,
): Promise<Pick<EgressOptions, "secrets" | "environment">> {
  if (!env || Object.keys(env).length === 0) return {};
  const secrets = await openSecrets({ variables: env, sandbox: id, owner, connections, logger });
  const files = await writeAuthority(shell, { workdir, certificate: secrets.authority.certificate }, signal);
  if (!files)
    logger.warn({ sandbox: id, ...owner }, "the sandbox has no room for the certificate of its secrets");
  return { secrets, environment: { ...secrets.environment, ...files } };
}

/** Returns false if the workspace is not usable. Restores access that the tenant removed (`chmod 0 .`), if possible. */
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

/**
 * Makes the tenant the owner of the workspace. Needed for an image without a workspace folder, because root
 * owns its volume.
 */
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

/**
 * The maximum number of helpers to open. If more helpers are needed, something keeps killing them, and the shells then
 * do all file work.
 */
const MAX_OPENED = 4;

/** The file helper, if the image has Perl. While there is no helper, the shells do the file operations. */
interface Helper {
  readonly files: PerlFiles | undefined;
  close(reason: Error): void;
}

/** Opens the helper in the background, and opens it again whenever it is lost. */
function keepHelper(open: OpenChannel, workdir: string): Helper {
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
  // On failure, the shells do the work and report the error.
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

const HEADER_BYTES = 8;
const OUTPUT = 1;
const ERROR_OUTPUT = 2;

/**
 * Wraps an exec stream as a channel that owns it. Docker sends output in frames. The eight-byte header of a frame
 * contains the number of the output and the length of the data.
 */
export function frameChannel(stream: Duplex, events: ChannelEvents): Channel {
  let failure: Error | undefined;
  const read = unframe(events);
  stream.on("data", (bytes: Buffer) => {
    if (!read(bytes)) stream.destroy(new Error("The engine sent a malformed frame."));
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

/** Returns a function that takes the stream's bytes in pieces of any size. It returns false for a malformed frame. */
function unframe({ onOutput, onErrorOutput }: ChannelEvents): (bytes: Buffer) => boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerBytes = 0;
  /** The number of bytes of the current frame that have not arrived yet. */
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

/**
 * How long a shell may take to kill all other processes, in milliseconds. After that, the engine stops the
 * container.
 */
const KILL_ALL_MS = 1500;

/** Kills all processes of the sandbox. Returns true if the container is still running. Never throws. */
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

interface Loss {
  /** Completes the sentence "the sandbox was lost: …". */
  readonly why: string;
  /** True if the container has ended. */
  readonly isGone: boolean;
}

/** Finds out why a container's shell ended or does not answer. Resumes a paused container. Throws only the signal's reason. */
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
    return { why: "the Docker engine is unreachable", isGone: true };
  }
}

function endOf(found: ContainerInfo | undefined): string {
  if (!found) return "its container was removed";
  if (found.oomKilled) return "its container ran out of memory";
  return found.exitCode === 137 ? "its container was killed" : "its container was stopped";
}
