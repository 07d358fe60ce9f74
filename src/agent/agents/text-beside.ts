// Reads text files that a configuration names. After links are resolved, each file must be in the configuration's folder
// or a folder below it.

import { realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { readText } from "../../lib/read-text.ts";

const MAX_FILE_BYTES = 256 * 1024;

/** Returns the text of `file`, which is never blank, or the reason why the file cannot be used, as a clause. */
export async function textBeside(
  configFile: string,
  file: string,
): Promise<{ text: string } | { fault: string }> {
  const root = await realpath(dirname(configFile));
  const path = join(root, file);
  const target = await realpath(path).catch(() => path);
  const way = relative(root, target);
  const isOutside = isAbsolute(file) || isAbsolute(way) || way.split(sep)[0] === "..";
  if (isOutside) return { fault: `must be in the folder of this file or below it: \`${file}\` is not` };
  const read = await readText(target, MAX_FILE_BYTES);
  if ("fault" in read) return { fault: `must name a text file: \`${file}\` ${read.fault}` };
  if (!read.text.trim()) return { fault: `must name a text file: \`${file}\` is empty` };
  return { text: read.text };
}
