// From whatever there is on the engine to one running container of the right specification.
//
// Every step bears that another process, or a person, does the same or the opposite meanwhile: it looks, does one
// thing, and looks again.

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Sandbox } from "../ledger.ts";
import { type ContainerInfo, EngineError } from "./engine-info.ts";
import { labelsOf, SPEC } from "./identity.ts";
import type { DockerOptions } from "./options.ts";
import type { Host } from "./services.ts";
import { specOf } from "./spec.ts";

/** How long an engine that is away, or in disagreement with us, is given. */
const PATIENCE_MS = 12_000;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1000;

export interface Wanted {
  readonly sandbox: Sandbox;
  readonly options: DockerOptions;
}

/** Resolves with the container's id. Throws `backend_failed` or `backend_refused` with what is wrong, `unavailable` when the engine is away. */
export async function converge(host: Host, wanted: Wanted, signal: AbortSignal): Promise<string> {
  const { sandbox, options } = wanted;
  const network = await host.networks.prepare(options.network, signal);
  const labels = labelsOf(host.deployment, sandbox);
  const spec = specOf({ options, volume: sandbox.id, network, labels });
  let deadline = performance.now() + PATIENCE_MS;
  let pause = FIRST_PAUSE_MS;
  let wasPulled = false;

  const step = async (): Promise<string | undefined> => {
    const found = await host.engine.inspect(sandbox.id, signal);
    if (!found) {
      await host.disk.prepare(sandbox.id, options.disk, labels, signal);
      await host.engine.create(sandbox.id, spec, signal);
      return undefined;
    }
    if (found.labels[SPEC] !== spec.Labels?.[SPEC]) {
      host.logger.info(
        { sandbox: sandbox.id },
        "replacing a container that is made from another specification",
      );
      await host.engine.remove(found.id, signal);
      return undefined;
    }
    if (found.status === "running") return found.id;
    await raise(host, wanted, found, signal);
    return undefined;
  };

  for (;;) {
    try {
      const containerId = await step();
      if (containerId !== undefined) return containerId;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (isMissingImage(error) && !wasPulled) {
        wasPulled = true;
        await pull(host, wanted, signal);
        deadline = performance.now() + PATIENCE_MS;
        continue;
      }
      if (!isPassing(error) || performance.now() > deadline) throw inWords(error);
      host.logger.warn({ sandbox: sandbox.id, err: error }, "the Docker engine did not do as it was asked");
      await sleep(pause, undefined, { signal });
      pause = Math.min(pause * 2, MAX_PAUSE_MS);
    }
  }
}

async function raise(
  { engine, disk, deployment }: Host,
  { sandbox, options }: Wanted,
  found: ContainerInfo,
  signal: AbortSignal,
) {
  if (found.status === "paused") return engine.unpause(found.id, signal);
  if (found.status === "removing" || found.status === "dead") return engine.remove(found.id, signal);
  await disk.prepare(sandbox.id, options.disk, labelsOf(deployment, sandbox), signal);
  try {
    await engine.start(found.id, signal);
  } catch (error) {
    // One that cannot be started is not left lying about.
    if (error instanceof EngineError && !isPassing(error)) await engine.remove(found.id, signal);
    throw error;
  }
}

async function pull({ engine, logger }: Host, { sandbox, options }: Wanted, signal: AbortSignal) {
  const { image } = options;
  logger.info({ image }, "pulling an image");
  try {
    await engine.pull(image, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const err = new AppError(
      "backend_failed",
      `The image \`${image}\` is not on the Docker engine, and cannot be pulled: ${messageOf(cause)}`,
      { cause },
    );
    const { id, owner, name: backend } = sandbox;
    logger.warn({ sandbox: id, ...owner, backend, image, code: err.code, err }, "an image cannot be pulled");
    throw err;
  }
}

const isMissingImage = ({ status, message }: EngineError) => status === 404 && /no such image/i.test(message);

/** Another look may find things different: somebody else was at it, or the engine is away for a moment. */
const isPassing = ({ status, message }: EngineError) =>
  status === 0 || status === 409 || status === 503 || (status === 404 && /no such container/i.test(message));

/** What the engine says of a request is told; what goes wrong inside it may name the host's folders, and is not. */
export function inWords(error: EngineError): AppError {
  if (error.status === 0)
    return new AppError("unavailable", `The Docker engine does not serve us: ${error.message}.`, {
      cause: error,
    });
  const why = error.status < 500 ? error.message : "the engine failed; the server's log tells more";
  return new AppError("backend_failed", `The sandbox cannot be made: ${why}`, {
    cause: error,
  });
}
