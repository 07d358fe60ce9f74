// What the helper refuses, in the words of the port: about the agent's path.

import { AppError } from "../../../core/errors.ts";
import { failure } from "../../failures.ts";
import { quoted } from "../../paths.ts";
import { Refusal } from "./link.ts";

/** Anything but a refusal as it is. */
export function inWords(error: unknown, path: string): unknown {
  if (!(error instanceof Refusal)) return error;
  if (error.code === "CLOSED")
    return new AppError(
      "backend_failed",
      `${quoted(path)} was closed, because many others were opened meanwhile. Try again.`,
    );
  // It comes from a stranger, and becomes part of a message.
  return failure(/^[A-Z0-9_]{1,20}$/.test(error.code) ? error.code : "unknown error", path, error);
}
