// Saves each result that is too long for the model to a file in the workspace, and shows the model its beginning, its end
// and the file's path.

import { createHash } from "node:crypto";
import { z } from "zod";
import { firstChars, lastChars } from "../../lib/text.ts";
import { warning } from "../../protocol/event.ts";
import type { Backend } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";
import { defineHook, type ToolRequest } from "../core/hook.ts";
import type { Content, ToolCall } from "../core/message.ts";
import type { Stream } from "../core/stream.ts";
import type { Run } from "../core/tool.ts";

/** Tools that limit their results themselves, or whose results the model can read in parts. */
const EXCLUDED: ReadonlySet<string> = new Set(["ls", "glob", "grep", "read_file", "edit_file", "write_file"]);

/** The path is relative to the workspace, so commands can find the folder too. */
const FOLDER = ".skein/results";
/** Keeps these files out of a Git repository in the workspace. */
const IGNORE = { path: ".skein/.gitignore", content: "*\n" };
/** The maximum number of files in the workspace. The oldest is removed first. */
const MAX_FILES = 100;

const characters = z.int().min(0);

export const eviction = defineHook({
  name: "eviction",
  options: z
    .strictObject({
      max_chars: characters
        .default(80_000)
        .describe("Maximum length of a result in characters. A longer result is moved to a file."),
      head: characters.default(2000).describe("Characters to keep from the beginning."),
      tail: characters.default(2000).describe("Characters to keep from the end."),
    })
    .refine(({ max_chars, head, tail }) => head + tail <= max_chars, "head and tail must fit into max_chars"),
  activeByDefault: () => true,
  create: (options, { backend }) => ({
    name: "eviction",

    async *wrapToolCall(request, next, run) {
      const result = yield* next(request);
      if (result.status !== "done" || EXCLUDED.has(request.call.name)) return result;
      const { output, error } = result;
      const text = textIn(output);
      const isLong = (candidate: string) => candidate.length > options.max_chars;
      const note = isLong(text) && backend ? yield* save(text, backend, request, run) : "";
      return {
        ...result,
        output: isLong(text) ? withText(output, shortened(text, options, note)) : output,
        ...(error && isLong(error) ? { error: shortened(error, options, "") } : {}),
      };
    },
  }),
});

function shortened(text: string, { head, tail }: { head: number; tail: number }, note: string): string {
  const [start, end] = [firstChars(text, head), lastChars(text, tail)];
  const missing = text.length - start.length - end.length;
  return `${start}\n\n... (truncated ${missing} characters${note}) ...\n\n${end}`;
}

/** Returns only the text parts. Other parts do not count and stay unchanged. */
function textIn(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function withText(content: Content, text: string): Content {
  if (typeof content === "string") return text;
  return [{ type: "text", text }, ...content.filter((part) => part.type !== "text")];
}

/** Saves the text. Returns a note with the path, or an empty string if saving failed. */
async function* save(
  text: string,
  backend: Backend,
  { call, signal }: ToolRequest,
  run: Run,
): Stream<string> {
  const path = `${FOLDER}/${fileName(run, call)}`;
  try {
    await backend.write(path, Buffer.from(text), signal);
    // Ignore failures, because an additional file does no harm, even if git sees it.
    await backend.write(IGNORE.path, Buffer.from(IGNORE.content), signal).catch(() => {});
    await forgetOldest(backend, signal).catch(() => {});
    return `; the full text is in ${path}`;
  } catch (error) {
    const reason = AppError.from(error).message;
    yield warning("eviction_failed", `The long result of \`${call.name}\` could not be saved: ${reason}`);
    return "";
  }
}

/**
 * Returns a safe and unique file name. Providers may use any characters in call ids and may reuse ids in
 * other runs.
 */
function fileName({ id }: Run, call: ToolCall): string {
  const isSafe = /^[A-Za-z0-9_-]{1,64}$/.test(call.id);
  return `${id}-${isSafe ? call.id : createHash("sha256").update(call.id).digest("hex").slice(0, 16)}.txt`;
}

async function forgetOldest(backend: Backend, signal: AbortSignal): Promise<void> {
  const files = await backend.list(FOLDER, signal);
  if (files.length <= MAX_FILES) return;
  const byAge = files.toSorted((a, b) => (a.modified_at < b.modified_at ? -1 : 1));
  for (const file of byAge.slice(0, files.length - MAX_FILES)) await backend.remove(file.path, signal);
}
