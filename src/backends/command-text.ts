// Which command lines can be run at all, wherever it is.

import { AppError } from "../core/errors.ts";

/** The system takes 128 KiB for one argument. */
const MAX_COMMAND_BYTES = 100_000;

/** Throws `invalid_request`. */
export function refuseUnusable(command: string): void {
  if (command.includes("\0")) throw new AppError("invalid_request", "The command holds a NUL character.");
  const bytes = Buffer.byteLength(command);
  if (bytes > MAX_COMMAND_BYTES)
    throw new AppError(
      "invalid_request",
      `The command has ${bytes} bytes; at most ${MAX_COMMAND_BYTES} are possible. Write a file and run that.`,
    );
}
