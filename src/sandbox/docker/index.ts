// The backend `docker`: one container per user and backend, created on first use.

import type { Backend } from "../../agent/core/backend.ts";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import type { BackendDefinition, BackendDriver, BackendKey } from "../definition.ts";
import { editing } from "../edit.ts";
import { searching } from "../search.ts";
import { deleteFiles } from "./deleting.ts";
import { isOpenToNetwork } from "./engine-connection.ts";
import { toAppError } from "./engine-error.ts";
import { openEngines } from "./engines.ts";
import { sandboxFiles } from "./files.ts";
import { sandboxId } from "./identity.ts";
import { DockerOptions, keepOf } from "./options.ts";
import { Reaper } from "./reaper.ts";
import { DockerSandbox } from "./sandbox.ts";

export const docker = {
  type: "docker",
  options: DockerOptions,
  open(services): BackendDriver<DockerOptions> {
    const { logger, docker: settings, onState, sandboxes: ledger } = services;
    const engines = openEngines(services);
    const sandboxes = new Map<string, DockerSandbox>();
    const { sweepMs } = settings;
    const reaper = new Reaper({ engines, ledger, sandboxes: () => sandboxes, sweepMs, logger });
    const idOf = async (place: BackendKey) => sandboxId(await engines.deployment(), place);

    const make = (id: string, options: DockerOptions, place: BackendKey): DockerSandbox => {
      const made = new DockerSandbox({
        engines,
        sandbox: { id, owner: place.owner, name: place.name, keep: keepOf(options), disk: options.disk },
        options,
        onState: (state) => onState(place, state),
        logger,
      });
      sandboxes.set(id, made);
      return made;
    };
    /**
     * Returns the sandbox with this configuration. Closes an open sandbox that has a different configuration.
     */
    const obtain = async (id: string, options: DockerOptions, place: BackendKey): Promise<DockerSandbox> => {
      reaper.start();
      const known = sandboxes.get(id);
      if (known && isSame(known.options, options)) return known;
      await known?.close("it is being recreated with a new configuration");
      return make(id, options, place);
    };

    /** Stops the sandbox and records that in the ledger. Keeps the files. */
    const halt = async (id: string): Promise<void> => {
      const host = await engines.find(id);
      if (!host) return;
      const seen = await host.ledger.get(id);
      const ending = seen && (await host.ledger.begin(seen));
      await host.engine.stop(id);
      await host.disk.release(id);
      if (ending) await host.ledger.settle(ending, "stopped");
    };

    return {
      begin() {
        for (const { host } of settings.engines.filter(isOpenToNetwork)) logger.warn({ host }, OPEN_ENGINE);
        reaper.start();
      },

      async create(options, place): Promise<Backend> {
        const id = await idOf(place);
        const sandbox = await obtain(id, options, place);
        // If this fails, the first operation in the sandbox reports the failure.
        sandbox.ready(FOREVER).catch(() => {});
        return backendOf(() => sandboxes.get(id) ?? make(id, options, place), options);
      },

      async ready(options, place) {
        const sandbox = await obtain(await idOf(place), options, place);
        await sandbox.ready(FOREVER);
      },

      async state(_, place) {
        const id = await idOf(place);
        const known = sandboxes.get(id)?.state;
        if (known && known.status !== "stopped") return known;
        try {
          const host = await engines.find(id);
          const found = await host?.engine.inspect(id);
          return { status: found?.status === "running" ? "running" : "stopped" };
        } catch (error) {
          return { status: "error", error: messageOf(toAppError(error)) };
        }
      },

      isBusy: (place) => sandboxes.values().some((sandbox) => sandbox.isOf(place) && sandbox.isBusy),

      async stop(place) {
        const id = await idOf(place);
        const sandbox = sandboxes.get(id);
        await sandbox?.detach("it was stopped");
        await halt(id);
        if (sandbox && !sandbox.isBusy && !sandbox.isOpen) sandboxes.delete(id);
      },

      async erase(owner) {
        const own = (await ledger.list()).filter(
          (each) => each.owner.tenant === owner.tenant && each.owner.user === owner.user,
        );
        for (const { id, engine } of own) {
          await sandboxes.get(id)?.close("its user is being deleted");
          sandboxes.delete(id);
          const seen = await ledger.get(id);
          const ending = seen && (await ledger.begin(seen));
          if (seen?.copy !== undefined && !ending)
            throw new AppError("unavailable", "A workspace of this user is being moved. Try again shortly.");
          for (const name of new Set([seen?.engine ?? engine, seen?.copy]))
            if (name !== undefined) await deleteFiles(await engines.host(name), id);
          if (ending) await ledger.settle(ending, "gone");
        }
        return own.length;
      },

      ping: engines.ping,
      engines: engines.checks,

      async close() {
        await reaper.close();
        const open = [...sandboxes].filter(([, sandbox]) => sandbox.isOpen);
        await Promise.all(sandboxes.values().map((sandbox) => sandbox.close("the server is stopping")));
        // Other servers may still use the sandboxes.
        if (open.length === 0 || settings.isShared) return;
        await Promise.allSettled(open.map(([id]) => halt(id)));
      },
    };
  },
} satisfies BackendDefinition<DockerOptions>;

/** Looks up the sandbox on each use, because it may have been replaced. */
function backendOf(current: () => DockerSandbox, { workdir }: DockerOptions): Backend {
  const files = sandboxFiles(current, workdir);
  const { stat, read, list, remove } = files;
  const write: Backend["write"] = async (path, data, signal) => {
    await current().assertRoom(signal);
    return files.write(path, data, signal);
  };
  return {
    type: "docker",
    workdir,
    exec: (command, options) => current().exec(command, options),
    stat,
    read,
    write,
    list,
    remove,
    ...editing({ stat, read, write }),
    ...searching(files),
  };
}

const OPEN_ENGINE =
  "the Docker engine is reached over a network without TLS: anyone who can reach its port or read the traffic has root access to its machine. Name it in `backends.docker.engines` with `tls`, or use its socket";

const FOREVER = new AbortController().signal;

const isSame = (one: DockerOptions, other: DockerOptions) => JSON.stringify(one) === JSON.stringify(other);
