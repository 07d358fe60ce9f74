// How workspaces can be held to their size on an engine: found out by doing it once, on a small scale.

import { AppError, messageOf } from "../../core/errors.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Engine } from "./engine.ts";
import { EngineError } from "./engine-info.ts";
import type { LoopDisks } from "./loop.ts";

/**
 * `quota`: the engine's storage counts what is in a volume; `loop`: a volume is a file system of its own. With
 * both, full is full. `watch`: nothing holds a workspace to its size but who watches it.
 */
export type DiskKind = "quota" | "loop" | "watch";

export type ProbedEngine = Pick<
  Engine,
  "create" | "remove" | "createVolume" | "removeVolume" | "securityOptions"
>;

const PROBE_BYTES = 16 * 1024 ** 2;

export interface FoundKind {
  readonly kind: DiskKind;
  /** Those to use for workspaces that are, or were, of that kind. */
  readonly loops: LoopDisks | undefined;
  /** What is in the way of a better kind. */
  readonly why?: string;
}

/** The first of `candidates` that works is taken. Throws what the engine says when it is away. */
export async function findDiskKind(
  engine: ProbedEngine,
  candidates: readonly LoopDisks[],
  signal: AbortSignal,
): Promise<FoundKind> {
  const probe = `skein-probe-${randomId()}`;
  const [first] = candidates;
  if (await hasQuota(engine, probe, signal)) return { kind: "quota", loops: first };
  let why = "the server is not root on a Linux machine";
  for (const loops of candidates) {
    const obstacle = await findObstacle(engine, loops, probe, signal);
    if (obstacle === undefined) return { kind: "loop", loops };
    why = obstacle;
  }
  return { kind: "watch", loops: first, why };
}

async function hasQuota(engine: ProbedEngine, probe: string, signal: AbortSignal): Promise<boolean> {
  try {
    await engine.createVolume(probe, {}, { size: `${PROBE_BYTES}` }, signal);
    await engine.removeVolume(probe, signal);
    return true;
  } catch (error) {
    if (isAway(error)) throw error;
    return false;
  }
}

async function findObstacle(
  engine: ProbedEngine,
  loops: LoopDisks,
  probe: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  // Then users, or labels, are not the same in a container as in a file system that comes from outside.
  const security = await engine.securityOptions(signal);
  const other = security.find((option) => /^name=(rootless|userns|selinux)/.test(option));
  if (other !== undefined) return `the engine runs with ${other.slice("name=".length)}`;
  try {
    await loops.attach(probe, PROBE_BYTES, signal);
    const link = loops.linkOf(probe);
    const isShared = (await sees(engine, link, signal)) && !(await sees(engine, `${link}-nowhere`, signal));
    return isShared ? undefined : "the engine does not share this machine's files";
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return messageOf(error.cause ?? error);
  } finally {
    await loops.erase(probe, signal).catch(() => {});
  }
}

/** Whether a path is there for the engine. It looks when it is asked for a container, before it looks for the image. */
async function sees(engine: ProbedEngine, path: string, signal: AbortSignal): Promise<boolean> {
  const mount = { Type: "bind" as const, Source: path, Target: "/probe", ReadOnly: true };
  const spec = { Image: "skein.invalid/probe", HostConfig: { Mounts: [mount] } };
  try {
    await engine.remove(await engine.create(`skein-probe-${randomId()}`, spec, signal), signal);
    return true;
  } catch (error) {
    if (isAway(error)) throw error;
    return error instanceof EngineError && error.status === 404;
  }
}

const isAway = (error: unknown) => error instanceof EngineError && error.status === 0;
