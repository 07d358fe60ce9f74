// Adds AGENTS.md files to the system prompt. Reads the files when a run begins, and again whenever a tool may have changed
// them.

import { z } from "zod";
import { xmlTag } from "../../lib/text.ts";
import { warning } from "../../protocol/event.ts";
import type { Backend } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";
import { defineHook } from "../core/hook.ts";
import type { SystemBlock } from "../core/model.ts";

const MAX_KIB = 64;

export const memory = defineHook({
  name: "memory",
  userMay: "switch",
  options: z.strictObject({}),
  activeByDefault: (agent) => agent.memory !== undefined && agent.backend !== undefined,
  create(_, { agent, backend }) {
    const paths = agent.memory?.paths ?? [];
    if (!backend || paths.length === 0) return { name: "memory" };
    let text = "";
    let outdated = false;

    return {
      name: "memory",

      async *beforeAgent(run) {
        const loaded = await load(backend, paths, run.signal);
        for (const fault of loaded.faults) yield warning("memory_unreadable", fault);
        text = loaded.text;
      },

      async modifyRequest(request, run) {
        if (outdated) {
          outdated = false;
          const loaded = await load(backend, paths, run.signal);
          // A temporary backend failure must not make the agent forget.
          if (loaded.faults.length === 0) text = loaded.text;
        }
        return text ? { ...request, system: [...request.system, blockOf(text, paths)] } : request;
      },

      async *wrapToolCall(request, next) {
        try {
          return yield* next(request);
        } finally {
          if (request.tool && !request.tool.annotations.readOnly) outdated = true;
        }
      },
    };
  },
});

interface MemoryText {
  readonly text: string;
  /** One sentence for each file that exists but could not be read. */
  readonly faults: readonly string[];
}

/** Loads the files. Skips missing and empty ones. */
async function load(backend: Backend, paths: readonly string[], signal: AbortSignal): Promise<MemoryText> {
  const texts: string[] = [];
  const faults: string[] = [];
  let left = MAX_KIB * 1024;
  for (const path of paths) {
    try {
      const file = await fileText(backend, path, left, signal);
      if (!file) continue;
      left -= Buffer.byteLength(file.text);
      if (file.text.trim()) texts.push(file.text.trim());
      if (file.truncated) {
        texts.push(
          `[The rest is left out, because at most ${MAX_KIB} KiB of memory are read. Shorten the files.]`,
        );
        break;
      }
    } catch (error) {
      signal.throwIfAborted();
      faults.push(`Memory file \`${path}\` could not be read: ${AppError.from(error).message}`);
    }
  }
  return { text: texts.join("\n\n---\n\n"), faults };
}

function blockOf(text: string, paths: readonly string[]): SystemBlock {
  const guidelines = `Guidelines for agent memory:
- This memory persists across conversations
- You can update it by using edit_file on the AGENTS.md file (${paths.join(", ")})
- Use it to track important context, decisions, and patterns
- Keep entries concise and organized`;
  return { id: "memory", text: `${xmlTag("agent_memory", text)}\n\n${guidelines}`, cache: "semi" };
}

export interface FileText {
  /** The text, decoded as UTF-8 with `\n` line endings and without a byte order mark. */
  readonly text: string;
  /** True when the file is longer than the limit. */
  readonly truncated: boolean;
}

/**
 * Reads the first `limit` bytes of a file. Returns undefined when it does not exist. Throws all other errors
 * of the backend.
 */
export async function fileText(
  backend: Backend,
  path: string,
  limit: number,
  signal: AbortSignal,
): Promise<FileText | undefined> {
  const chunks: Uint8Array[] = [];
  try {
    // Read one extra byte to find out if the file is longer.
    for await (const chunk of backend.read(path, { length: limit + 1 }, signal)) chunks.push(chunk);
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return undefined;
    throw error;
  }
  const bytes = Buffer.concat(chunks);
  // With `stream`, the decoder drops a character that the limit cut in two.
  const text = new TextDecoder().decode(bytes.subarray(0, limit), { stream: true });
  return { text: text.replaceAll("\r\n", "\n"), truncated: bytes.length > limit };
}
