// The options of a provider's client.

import { AppError } from "../core/errors.ts";
import type { Model, ModelSettings } from "../core/model.ts";

export interface ModelOptions {
  /** `provider:model`. */
  readonly name: string;
  /** The provider's name of the model. */
  readonly model: string;
  readonly baseUrl: string;
  readonly key: Key;
  /** Defaults for requests. */
  readonly settings: ModelSettings;
  readonly fallback?: Model | undefined;
}

/** A provider's key, how to set one, or that its SDK finds credentials of another kind. */
export type Key =
  | { readonly secret: string }
  | { readonly missing: string }
  | { readonly others: "found by the SDK" };

/** Throws `model_auth` for a key that is missing, or that no header can carry. */
export function secretOf(key: Key, model: string): string {
  if (!("secret" in key)) throw missingKey(key, model);
  if (/^[\x21-\x7e]+$/.test(key.secret)) return key.secret;
  throw new AppError(
    "model_auth",
    `The key for \`${model}\` contains a blank or a character that keys cannot contain. Copy it again.`,
  );
}

/** What a call fails with that needs a variable which is not set. */
export function missingKey(key: Key, model: string): AppError {
  const how = "missing" in key ? ` ${key.missing}` : "";
  return new AppError("model_auth", `There is no key for \`${model}\`.${how}`);
}
