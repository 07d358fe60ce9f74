// The backend `docker`: a container of its own for each user and backend, made on first use.

import type { Backend } from "../../core/backend.ts";
import { messageOf } from "../../core/errors.ts";
import type { BackendDefinition, BackendDriver, Place } from "../definition.ts";
import { editing } from "../edit.ts";
import { searching } from "../search.ts";
import { inWords } from "./converge.ts";
import { EngineError } from "./engine.ts";
import { sandboxFiles } from "./files.ts";
import { hostHolder } from "./host.ts";
import { sandboxId } from "./identity.ts";
import { Keeper } from "./keeper.ts";
import { DockerOptions, keepOf } from "./options.ts";
import { DockerSandbox } from "./sandbox.ts";
import type { Host } from "./services.ts";

export const docker = {
  type: "docker",
  options: DockerOptions,
  open(services): BackendDriver<DockerOptions> {
    const { logger, docker: settings, onState } = services;
    const { engine, deployment, reach } = hostHolder(services);
    const sandboxes = new Map<string, DockerSandbox>();
    const keeper = new Keeper({ reach, sandboxes: () => sandboxes, sweepMs: settings.sweepMs, logger });
    const idOf = async (place: Place) => sandboxId(await deployment(), place);

    const obtain = async (options: DockerOptions, place: Place): Promise<DockerSandbox> => {
      keeper.start();
      const id = await idOf(place);
      const known = sandboxes.get(id);
      if (known && isSame(known.options, options)) return known;
      await known?.close("it is made anew from another configuration");
      const made = new DockerSandbox({
        host: reach,
        sandbox: { id, owner: place.owner, name: place.name, keep: keepOf(options) },
        options,
        onState: (state) => onState(place, state),
      });
      sandboxes.set(id, made);
      return made;
    };

    /** For good, in the ledger as well; the files stay. */
    const halt = async (host: Host, id: string): Promise<void> => {
      const seen = await host.ledger.get(id);
      const ending = seen && (await host.ledger.begin(seen));
      await host.engine.stop(id);
      await host.disk.release(id);
      if (ending) await host.ledger.settle(ending, "stopped");
    };

    return {
      begin: () => keeper.start(),

      async create(options, place): Promise<Backend> {
        const sandbox = await obtain(options, place);
        // Whoever comes to use it learns what is in the way.
        sandbox.ready(new AbortController().signal).catch(() => {});
        return backendOf(sandbox, options);
      },

      async ready(options, place) {
        const sandbox = await obtain(options, place);
        await sandbox.ready(new AbortController().signal);
      },

      async state(_, place) {
        const id = await idOf(place);
        const known = sandboxes.get(id)?.state;
        if (known && known.status !== "stopped") return known;
        try {
          const found = await engine.inspect(id);
          return { status: found?.status === "running" ? "running" : "stopped" };
        } catch (error) {
          return { status: "error", error: `The Docker engine does not serve us: ${messageOf(error)}.` };
        }
      },

      isBusy: (place) => sandboxes.values().some((sandbox) => sandbox.isOf(place) && sandbox.isBusy),

      async stop(place) {
        const id = await idOf(place);
        await sandboxes.get(id)?.letGo("it was stopped");
        await halt(await reach(), id);
      },

      async ping() {
        await engine.ping().catch((error: unknown) => {
          throw error instanceof EngineError ? inWords(error) : error;
        });
      },

      async close() {
        await keeper.close();
        const open = [...sandboxes].filter(([, sandbox]) => sandbox.isOpen);
        await Promise.all(sandboxes.values().map((sandbox) => sandbox.close("the server is stopping")));
        if (open.length === 0) return;
        const host = await reach();
        await Promise.allSettled(open.map(([id]) => halt(host, id)));
      },
    };
  },
} satisfies BackendDefinition<DockerOptions>;

function backendOf(sandbox: DockerSandbox, { workdir }: DockerOptions): Backend {
  const files = sandboxFiles(sandbox, workdir);
  const { stat, read, list, remove } = files;
  const write: Backend["write"] = async (path, data, signal) => {
    await sandbox.assertRoom(signal);
    return files.write(path, data, signal);
  };
  return {
    ...{ type: "docker", workdir },
    exec: (command, options) => sandbox.exec(command, options),
    ...{ stat, read, write, list, remove },
    ...editing({ stat, read, write }),
    ...searching(files),
  };
}

const isSame = (one: DockerOptions, other: DockerOptions) => JSON.stringify(one) === JSON.stringify(other);
