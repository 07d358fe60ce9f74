// Sessions in files, one each: `<folder>/<owner>/<id>.json`. For one process at a time.

import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../../core/errors.ts";
import { Id, type Owner } from "../../core/ids.ts";
import { randomId } from "../../lib/random-id.ts";
import { type SessionRepository, sessionFrom } from "./session-hooks.ts";

/** Makes what is missing of the folder. A session appears whole or not at all. */
export function fileSessions(folder: string): SessionRepository {
  return {
    async get(owner, id) {
      const json = await readFile(pathOf(folder, owner, id), "utf8").catch((error: unknown) => {
        if (isMissing(error)) return undefined;
        throw error;
      });
      return json === undefined ? undefined : sessionFrom(json);
    },
    async put(owner, session) {
      const path = pathOf(folder, owner, session.id);
      await mkdir(dirname(path), { recursive: true });
      const draft = `${path}.${randomId()}`;
      await writeFile(draft, JSON.stringify(session));
      await rename(draft, path);
    },
  };
}

/** An owner's names may be any text. */
function pathOf(folder: string, { tenant, user }: Owner, id: string): string {
  if (!Id.safeParse(id).success) throw new AppError("invalid_request", `\`${id}\` is no id of a session.`);
  const owner = createHash("sha256")
    .update(JSON.stringify([tenant, user]))
    .digest("hex")
    .slice(0, 32);
  return join(folder, owner, `${id}.json`);
}

const isMissing = (error: unknown) => error instanceof Error && "code" in error && error.code === "ENOENT";
