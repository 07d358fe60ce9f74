// The `local` backend. Files and commands are on this machine and belong to the user who runs the server. File
// operations stay in the owner's folder. Commands can do everything that this user may do, so the backend is for one
// trusted user.

import { z } from "zod";
import type { Backend } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { PROCESS_ID } from "../../lib/process-id.ts";
import { type BackendDefinition, commonOptions, type SharedMachine } from "../definition.ts";
import { editing } from "../edit.ts";
import { searching } from "../search.ts";
import { LocalCommands } from "./commands.ts";
import { localFiles } from "./files.ts";
import { eraseWorkspace, markUnused, openWorkspace, usedBy, workspaceId, workspacesOf } from "./workspace.ts";

const options = z.strictObject({
  type: z.literal("local").describe("Files and commands are on the server's machine."),
  ...commonOptions,
});
type Options = z.output<typeof options>;

export const local = {
  type: "local",
  options,
  open({ dataDir, allowSeveralUsers, machine = alone() }) {
    const commands = new LocalCommands(machine.id);

    return {
      begin() {},
      async create({ workdir }: Options, place): Promise<Backend> {
        if (process.platform === "win32")
          throw new AppError(
            "backend_refused",
            "The local backend needs Linux or macOS. Use `type: docker`.",
          );
        const owner = JSON.stringify([place.owner.tenant, place.owner.user]);
        if (!allowSeveralUsers && !(await machine.isOneUser(owner))) throw severalUsers();

        const workspace = await openWorkspace(dataDir, place, machine.id);
        await commands.endOrphans(workspace.id);
        const tree = localFiles(workspace, workdir);
        const { stat, read, write, list, remove } = tree;
        return {
          type: "local",
          workdir,
          exec: (command, options) => commands.exec(workspace, command, options),
          stat,
          read,
          write,
          list,
          remove,
          ...editing(tree),
          ...searching(tree),
        };
      },
      isBusy: (place) => commands.isBusy(workspaceId(place)),
      async ready() {},
      state: async (_, place) => ({
        status: (await usedBy(dataDir, place)) === machine.id ? "running" : "stopped",
      }),
      async stop(place) {
        await commands.stop(workspaceId(place));
        await markUnused(dataDir, place);
      },
      async erase(owner) {
        const ids = await workspacesOf(dataDir, owner);
        let count = 0;
        for (const id of ids) {
          await commands.stop(id);
          if (await eraseWorkspace(dataDir, id)) count += 1;
        }
        return count;
      },
      async ping() {},
      close: () => commands.close(),
    };
  },
} satisfies BackendDefinition<Options>;

function alone(): SharedMachine {
  let first: string | undefined;
  return {
    id: PROCESS_ID,
    async isOneUser(owner) {
      first ??= owner;
      return owner === first;
    },
  };
}

const severalUsers = () =>
  new AppError(
    "backend_refused",
    "The local backend serves one user, because commands of several users could read each other's files. Use `type: docker`, or set ALLOW_LOCAL_BACKEND=true to allow this.",
  );
