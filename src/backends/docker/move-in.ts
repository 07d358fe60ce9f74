// From a running container to one that can be worked in: a shell that answers, a workspace that can be written.

import { randomId } from "../../lib/random-id.ts";
import type { Sandbox } from "../ledger.ts";
import type { OpenChannel } from "../shell/channel.ts";
import { clearStaging } from "../shell/files.ts";
import { PRELUDE } from "../shell/prelude.ts";
import { LaneLost, quote, type Runner } from "../shell/runner.ts";
import { Shell } from "../shell/shell.ts";
import { DiskWatch } from "./disk-watch.ts";
import { EngineError } from "./engine-info.ts";
import { frameChannel } from "./exec-channel.ts";
import { type Helper, keepHelper } from "./helper.ts";
import { labelsOf } from "./identity.ts";
import type { DockerOptions } from "./options.ts";
import type { Host } from "./services.ts";
import { chownSpec, shellSpec } from "./spec.ts";

export interface Opened {
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

export interface MoveIn {
  readonly sandbox: Sandbox;
  readonly options: DockerOptions;
  readonly containerId: string;
  /** An operation has had no answer for long. */
  readonly onSilence: () => void;
}

/** Throws `LaneLost` when the container goes away meanwhile. */
export async function moveIn(
  host: Host,
  { sandbox, options, containerId, onSilence }: MoveIn,
  signal: AbortSignal,
): Promise<Opened> {
  const open: OpenChannel = async (events, signal) => {
    try {
      return frameChannel(await host.engine.exec(containerId, shellSpec(options), signal), events);
    } catch (error) {
      // Whoever wanted the shell finds out what became of the container.
      throw error instanceof EngineError ? new LaneLost(error.message, { cause: error }) : error;
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
  shell: Pick<Runner, "runOnce">,
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
  { sandbox, options }: Pick<MoveIn, "sandbox" | "options">,
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
