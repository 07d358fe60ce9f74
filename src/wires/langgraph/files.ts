// Writes files from a client into the agent's backend, where the agent can read them.

import { AppError } from "../../agent/core/errors.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { shownContents } from "../shown.ts";

interface FilesContext {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly agent: string | undefined;
}

/** The placeholder for a long file's content, which is never written back. */
const PLACEHOLDER = /^\[\d+ bytes\]$/;
const MAX_FILES = 100;

/** Writes the files that differ from the thread's files. `null` deletes a file. Throws `invalid_request` or `not_found`. */
export async function writeFiles(
  { stores, agents, backends }: Pick<RouteServices, "stores" | "agents" | "backends">,
  { owner, thread_id, agent }: FilesContext,
  files: Readonly<Record<string, unknown>>,
): Promise<void> {
  const shown = shownContents((await stores.threads.state(owner, thread_id)).files);
  const changed = Object.entries(files)
    .map(([path, file]) => [path, contentOf(path, file)] as const)
    .filter(([path, content]) => content !== shown[path] && !PLACEHOLDER.test(content ?? ""));
  if (changed.length === 0) return;
  if (changed.length > MAX_FILES)
    throw new AppError(
      "invalid_request",
      `files: ${changed.length} files were sent; at most ${MAX_FILES} are allowed.`,
    );
  const { name, backend: config } = agents.find(agent);
  if (!config)
    throw new AppError("invalid_request", `files: agent \`${name}\` has no backend to write them to.`);
  const backend = await backends.get(owner, config);
  const signal = AbortSignal.timeout(WRITE_MS);
  for (const [path, content] of changed) {
    const place = path.startsWith(`${backend.workdir}/`)
      ? path
      : `${backend.workdir}/${path.replace(/^\/+/, "")}`;
    if (content === null) await backend.remove(place, signal);
    else await backend.write(place, Buffer.from(content), signal);
  }
}

const WRITE_MS = 60_000;

/** Reads a text, or a file as newer front ends store it: `{content}`, whole or in lines. */
function contentOf(path: string, file: unknown): string | null {
  if (file === null || typeof file === "string") return file;
  const content = typeof file === "object" && file !== null && "content" in file ? file.content : undefined;
  if (typeof content === "string") return content;
  if (Array.isArray(content) && content.every((line) => typeof line === "string")) return content.join("\n");
  throw new AppError("invalid_request", `files: the content of \`${path}\` is not text.`);
}
