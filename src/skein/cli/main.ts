// The entry point of the process: parses arguments, loads the environment and sets the exit code.

import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import packageJson from "../../../package.json" with { type: "json" };
import { AppError, messageOf } from "../../agent/core/errors.ts";
import { fromUtf16, utf16Of } from "../../lib/utf16.ts";
import { readCall } from "./command.ts";
import { COMMANDS, head } from "./commands.ts";
import { visible } from "./paint.ts";
import { t } from "./texts.ts";

async function main(args: readonly string[]): Promise<number> {
  if (args[0] === "--version" || args[0] === "-v") return say(packageJson.version);
  const call = readCall(args, COMMANDS, head(t()));
  if (typeof call === "string") return say(call);
  loadEnvironment();
  return call.command.run(call.values, call.argument);
}

const ENV_FILE = ".env";

/**
 * Loads the file `.env`. Variables that are already set take precedence. Windows editors may start the file with a byte
 * order mark. Throws `config_invalid`.
 */
function loadEnvironment(): void {
  if (!existsSync(ENV_FILE)) return;
  try {
    const bytes = readFileSync(ENV_FILE);
    const order = utf16Of(bytes);
    const text = (order && fromUtf16(bytes, order)) ?? bytes.toString();
    for (const [name, value] of Object.entries(parseEnv(text.replace(/^\ufeff/, ""))))
      process.env[name] ??= value;
  } catch (error) {
    throw new AppError("config_invalid", t().envUnreadable(ENV_FILE, messageOf(error)), {
      cause: error,
    });
  }
}

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`skein: ${visible(error instanceof AppError ? error.message : String(error))}\n`);
  process.exitCode = error instanceof AppError && error.code === "invalid_request" ? 2 : 1;
}
