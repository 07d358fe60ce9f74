// The backend `docker`: a container of its own for each user and backend, made on first use.

import type { Backend } from "../../core/backend.ts";
import { messageOf } from "../../core/errors.ts";
import type { BackendDefinition, BackendDriver, Place } from "../definition.ts";
import { editing } from "../edit.ts";
import { searching } from "../search.ts";
import { toAppError } from "./engine.ts";
import { sandboxFiles } from "./files.ts";
import { type Host, lazyHost } from "./host.ts";
import { sandboxId } from "./identity.ts";
import { DockerOptions, keepOf } from "./options.ts";
import { Reaper } from "./reaper.ts";
import { DockerSandbox } from "./sandbox.ts";

export const docker = {
  type: "docker",
  options: DockerOptions,
  open(services): BackendDriver<DockerOptions> {
    const { logger, docker: settings, onState } = services;
    const { engine, deployment, getHost } = lazyHost(services);
    const sandboxes = new Map<string, DockerSandbox>();
    const reaper = new Reaper({ getHost, sandboxes: () => sandboxes, sweepMs: settings.sweepMs, logger });
    const idOf = async (place: Place) => sandboxId(await deployment(), place);

    const make = (id: string, options: DockerOptions, place: Place): DockerSandbox => {
      const made = new DockerSandbox({
        host: getHost,
        sandbox: { id, owner: place.owner, name: place.name, keep: keepOf(options) },
        options,
        onState: (state) => onState(place, state),
      });
      sandboxes.set(id, made);
      return made;
    };
    /** The sandbox with this configuration; closes one with another. */
    const obtain = async (id: string, options: DockerOptions, place: Place): Promise<DockerSandbox> => {
      reaper.start();
      const known = sandboxes.get(id);
      if (known && isSame(known.options, options)) return known;
      await known?.close("it is being recreated with a new configuration");
      return make(id, options, place);
    };

    /** Stops it and records that in the ledger. The files stay. */
    const halt = async (host: Host, id: string): Promise<void> => {
      const seen = await host.ledger.get(id);
      const ending = seen && (await host.ledger.begin(seen));
      await host.engine.stop(id);
      await host.disk.release(id);
      if (ending) await host.ledger.settle(ending, "stopped");
    };

    return {
      begin: () => reaper.start(),

      async create(options, place): Promise<Backend> {
        const id = await idOf(place);
        const sandbox = await obtain(id, options, place);
        // Its first use reports a failure.
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
          const found = await engine.inspect(id);
          return { status: found?.status === "running" ? "running" : "stopped" };
        } catch (error) {
          return { status: "error", error: `Cannot reach the Docker engine: ${messageOf(error)}.` };
        }
      },

      isBusy: (place) => sandboxes.values().some((sandbox) => sandbox.isOf(place) && sandbox.isBusy),

      async stop(place) {
        const id = await idOf(place);
        const sandbox = sandboxes.get(id);
        await sandbox?.detach("it was stopped");
        await halt(await getHost(), id);
        if (sandbox && !sandbox.isBusy && !sandbox.isOpen) sandboxes.delete(id);
      },

      async ping() {
        await engine.ping().catch((error: unknown) => {
          throw toAppError(error);
        });
      },

      async close() {
        await reaper.close();
        const open = [...sandboxes].filter(([, sandbox]) => sandbox.isOpen);
        await Promise.all(sandboxes.values().map((sandbox) => sandbox.close("the server is stopping")));
        // Other servers may use them.
        if (open.length === 0 || settings.isShared) return;
        const host = await getHost();
        await Promise.allSettled(open.map(([id]) => halt(host, id)));
      },
    };
  },
} satisfies BackendDefinition<DockerOptions>;

/** Looks the sandbox up at each use, because it may have been replaced. */
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

const FOREVER = new AbortController().signal;

const isSame = (one: DockerOptions, other: DockerOptions) => JSON.stringify(one) === JSON.stringify(other);
