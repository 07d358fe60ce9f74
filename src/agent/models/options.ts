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
  /** The default settings for requests. */
  readonly settings: ModelSettings;
  /** Set if the server executes searches of the web. Default: if it is a provider that is known to do so. */
  readonly searches?: true | undefined;
  readonly fallback?: Model | undefined;
}

/** A provider's key, instructions for setting one, or a mark that the SDK finds other credentials. */
export type Key =
  | { readonly secret: string }
  | { readonly missing: string }
  | { readonly others: "found by the SDK" };

/** Returns the secret. Throws `model_auth` if the key is missing or cannot be sent in a header. */
export function secretOf(key: Key, model: string): string {
  if (!("secret" in key)) throw missingKey(key, model);
  if (/^[\x21-\x7e]+$/.test(key.secret)) return key.secret;
  throw new AppError(
    "model_auth",
    `The key for \`${model}\` contains a space or another character that is not allowed in keys. Copy the key again.`,
  );
}

/** Returns the error for a call that needs an unset variable. */
export function missingKey(key: Key, model: string): AppError {
  const how = "missing" in key ? ` ${key.missing}` : "";
  return new AppError("model_auth", `No API key is configured for \`${model}\`.${how}`);
}
