// Wraps a plugin's model: uses its configured name and validates its replies. An error from the model is a fault of the
// plugin's code or service, not of the server.

import { isObject } from "../../lib/json.ts";
import { AppError, hasCode, messageOf } from "../core/errors.ts";
import type { Model, ModelReply } from "../core/model.ts";
import { isStream, type Stream } from "../core/stream.ts";
import { failureOf } from "./failure.ts";

/** Wraps `made`. Throws `config_invalid` if it is not a model. */
export function ownModel(name: string, made: Model, fallback: Model | undefined): Model {
  if (typeof made?.stream !== "function")
    throw new AppError(
      "config_invalid",
      `The provider of \`${name}\` must return a model: an object with a method \`stream\`.`,
    );
  return {
    name,
    fallback,
    async *stream(request, deltas) {
      try {
        return whole(yield* streamOf(made.stream(request, deltas)));
      } catch (error) {
        throw request.signal.aborted ? error : failed(name, error);
      }
    },
    ...(made.isFree ? { isFree: true } : {}),
    ...(made.outputLimit ? { outputLimit: (request) => made.outputLimit?.(request) } : {}),
  };
}

function streamOf(stream: Stream<ModelReply>): Stream<ModelReply> {
  if (isStream(stream)) return stream;
  throw new TypeError("`stream` must be an async generator: `async *stream(request) { … }`");
}

/** Returns the reply if it has every required part. */
function whole(reply: ModelReply): ModelReply {
  const parts = {
    content: typeof reply?.content === "string",
    tool_calls: Array.isArray(reply?.tool_calls),
    reasoning: Array.isArray(reply?.reasoning),
    stop_reason: typeof reply?.stop_reason === "string",
    usage: isObject(reply?.usage),
  };
  const missing = Object.entries(parts).flatMap(([part, isThere]) => (isThere ? [] : [`\`${part}\``]));
  if (missing.length === 0) return reply;
  throw new TypeError(`\`stream\` must return a complete reply; this one lacks ${missing.join(", ")}`);
}

/**
 * Converts SDK and network errors in the same way as errors of Skein's own providers. Any other error keeps
 * its message.
 */
function failed(name: string, error: unknown): AppError {
  const failure = failureOf(error, { model: name });
  if (!hasCode(failure, "internal")) return failure;
  return new AppError("model_rejected", `The provider of \`${name}\` failed: ${messageOf(error)}`, {
    cause: error,
  });
}
