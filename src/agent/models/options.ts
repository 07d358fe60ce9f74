// The options of a provider's client.

import { AppError } from "../core/errors.ts";
import type { Model, ModelSettings } from "../core/model.ts";

export interface ModelOptions {
  /** `provider:model`. */
  readonly name: string;
  /** The provider's name for the model. */
  readonly model: string;
  readonly baseUrl: string;
  readonly key: Key;
  /** Defaults for requests. */
  readonly settings: ModelSettings;
  readonly fallback?: Model | undefined;
}

/** A provider's key, instructions for setting one, or a mark that the SDK finds other credentials. */
export type Key =
  | { readonly secret: string }
  | { readonly missing: string }
  | { readonly others: "found by the SDK" };

/** Throws `model_auth` for a missing key, and for one that cannot be sent in a header. */
export function secretOf(key: Key, model: string): string {
  if (!("secret" in key)) throw missingKey(key, model);
  if (/^[\x21-\x7e]+$/.test(key.secret)) return key.secret;
  throw new AppError(
    "model_auth",
    `The key for \`${model}\` contains a space or another character that is not allowed in keys. Copy the key again.`,
  );
}

/** The error of a call that needs a variable which is not set. */
export function missingKey(key: Key, model: string): AppError {
  const how = "missing" in key ? ` ${key.missing}` : "";
  return new AppError("model_auth", `No API key is configured for \`${model}\`.${how}`);
}
