// Replaces text in a file, for every backend, through its `stat`, `read` and `write`.

import type { Backend } from "../agent/core/backend.ts";
import { AppError } from "../agent/core/errors.ts";
import { serially } from "../lib/async.ts";
import { quoted } from "./paths.ts";
import { replaceFirst } from "./replace.ts";

const MAX_EDIT_BYTES = 10 * 1024 * 1024;

/** Implements `edit`. Edits of the same file run one after another. */
export function editing(files: Pick<Backend, "stat" | "read" | "write">): Pick<Backend, "edit"> {
  const inTurn = serially();
  return {
    async edit(path, oldText, newText, signal) {
      if (oldText === "")
        throw new AppError("invalid_request", "old_text is empty. Use write_file to fill a new file.");
      const target = await files.stat(path, signal);
      await inTurn(target.path, async () => {
        const bytes = await readWhole(files, path, signal);
        const edited = await replaceFirst(bytes, oldText, newText);
        if (!edited) throw new AppError("invalid_request", "old_text not found in file");
        await files.write(path, edited, signal);
      });
    },
  };
}

async function readWhole(files: Pick<Backend, "read">, path: string, signal: AbortSignal): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of files.read(path, { length: MAX_EDIT_BYTES + 1 }, signal)) {
    chunks.push(chunk);
    size += chunk.length;
  }
  if (size > MAX_EDIT_BYTES)
    throw new AppError(
      "payload_too_large",
      `${quoted(path)} is larger than ${MAX_EDIT_BYTES} bytes, the maximum for an edit. Use a command.`,
    );
  return Buffer.concat(chunks);
}
