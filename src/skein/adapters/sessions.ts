// Generation hooks that load a conversation from a repository and save it there, and a repository of JSON files.

import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { AppError, Message, type Run, unknownTo } from "../../index.ts";
import type { GenerationHook } from "./generation.ts";

type Owner = Run["owner"];

const Session = z.object({
  id: z.string(),
  user_id: z.string(),
  messages: z.array(Message),
  updated_at: z.iso.datetime(),
});
export type Session = z.infer<typeof Session>;

/** Stores sessions. An owner's sessions are never visible to another owner, even under the same id. */
export interface SessionRepository {
  get(owner: Owner, id: string): Promise<Session | undefined>;
  put(owner: Owner, session: Session): Promise<void>;
}

/**
 * Returns a `loader` for `fromPreGeneration` and a `saver` for `fromPostGeneration`. The loader skips messages that the
 * thread already has.
 */
export function sessionHooks(repository: SessionRepository): {
  loader: GenerationHook;
  saver: GenerationHook;
} {
  return {
    async loader(state) {
      const session = await repository.get(state.run.owner, state.sessionId);
      if (session) state.messages.unshift(...unknownTo(state.messages, session.messages));
    },
    async saver({ run, sessionId, userId, messages, outputMessages }) {
      await repository.put(run.owner, {
        ...{ id: sessionId, user_id: userId, messages: [...messages, ...outputMessages] },
        updated_at: new Date().toISOString(),
      });
    },
  };
}

function sessionFrom(json: string): Session {
  const parsed = Session.safeParse(JSON.parse(json));
  if (parsed.success) return parsed.data;
  throw new AppError("internal", "The stored session cannot be parsed.", { cause: parsed.error });
}

/** Stores each session in `<folder>/<owner>/<id>.json`, written atomically. Only one process may use it at a time. */
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
      const draft = `${path}.${randomUUID()}`;
      await writeFile(draft, JSON.stringify(session));
      await rename(draft, path);
    },
  };
}

/** Hashes the owner, because its names may contain any characters. */
function pathOf(folder: string, { tenant, user }: Owner, id: string): string {
  if (!/^[\w-]{1,128}$/.test(id))
    throw new AppError("invalid_request", `\`${id}\` is not a valid session id.`);
  const owner = createHash("sha256")
    .update(JSON.stringify([tenant, user]))
    .digest("hex")
    .slice(0, 32);
  return join(folder, owner, `${id}.json`);
}

const isMissing = (error: unknown) => error instanceof Error && "code" in error && error.code === "ENOENT";
