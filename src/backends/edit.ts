// Replacing text in a file, for every backend over its `stat`, `read` and `write`.

import type { Backend } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";
import { serially } from "../lib/async.ts";
import { indexInBytes } from "../lib/search.ts";
import { quoted } from "./paths.ts";

const MAX_EDIT_BYTES = 10 * 1024 * 1024;

/**
 * Works on bytes, so that a file in any encoding keeps every byte that is not replaced. Edits of one file run one after
 * another; line ends are part of the text and never converted.
 */
export function editing(files: Pick<Backend, "stat" | "read" | "write">): Pick<Backend, "edit"> {
  const inTurn = serially();
  return {
    async edit(path, oldText, newText, signal) {
      if (oldText === "")
        throw new AppError("invalid_request", "old_text is empty. Use write_file to fill a new file.");
      const target = await files.stat(path, signal);
      await inTurn(target.path, async () => {
        const bytes = await readWhole(files, path, signal);
        await files.write(path, replaceFirst(bytes, oldText, newText), signal);
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

function replaceFirst(bytes: Buffer, oldText: string, newText: string): Buffer {
  const old = Buffer.from(oldText);
  const start = indexInBytes(bytes, old);
  if (start === -1)
    throw new AppError("invalid_request", `old_text not found in file${lineEndHint(bytes, oldText)}`);
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(newText), bytes.subarray(start + old.length)]);
}

/** Names a difference in line ends, which is invisible. */
function lineEndHint(bytes: Buffer, oldText: string): string {
  const unix = oldText.replaceAll("\r\n", "\n");
  if (indexInBytes(bytes, Buffer.from(unix.replaceAll("\n", "\r\n"))) !== -1)
    return ": its lines end in \\r\\n, those of old_text do not. Write \\r\\n in old_text and new_text.";
  if (indexInBytes(bytes, Buffer.from(unix)) !== -1)
    return ": its lines end in \\n, those of old_text in \\r\\n.";
  return "";
}
