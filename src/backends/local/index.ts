// The backend `local`: files and commands on this machine, as the user who runs the server. File operations stay in the
// owner's folder; commands may do all that this user may, so this backend is for one trusted user.

import { z } from "zod";
import type { Backend } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { type BackendDefinition, commonOptions } from "../definition.ts";
import { editing } from "../edit.ts";
import { searching } from "../search.ts";
import { LocalCommands } from "./commands.ts";
import { localFiles } from "./files.ts";
import { openWorkspace, workspaceId } from "./workspace.ts";

const options = z.strictObject({ type: z.literal("local"), ...commonOptions });
type Options = z.output<typeof options>;

export const local = {
  type: "local",
  options,
  open({ dataDir, allowSeveralUsers }) {
    const commands = new LocalCommands();
    /** The one user of this machine: the first to come. */
    let sole: string | undefined;
    const made = new Set<string>();

    return {
      begin() {},
      async create({ workdir }: Options, place): Promise<Backend> {
        if (process.platform === "win32")
          throw new AppError(
            "backend_refused",
            "The local backend needs Linux or macOS. Use `type: docker`.",
          );
        const owner = JSON.stringify([place.owner.tenant, place.owner.user]);
        sole ??= owner;
        if (owner !== sole && !allowSeveralUsers) throw severalUsers();

        const workspace = await openWorkspace(dataDir, place);
        await commands.endOrphans(workspace.id);
        made.add(workspace.id);
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
      state: async (_, place) => ({ status: made.has(workspaceId(place)) ? "running" : "stopped" }),
      async stop(place) {
        await commands.stop(workspaceId(place));
        made.delete(workspaceId(place));
      },
      async ping() {},
      close: () => commands.close(),
    };
  },
} satisfies BackendDefinition<Options>;

const severalUsers = () =>
  new AppError(
    "backend_refused",
    "The local backend serves one user, because commands of several users could read each other's files. Use `type: docker`, or set ALLOW_LOCAL_BACKEND=true to allow this.",
  );
