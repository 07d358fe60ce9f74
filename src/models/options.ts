// What a provider's client is made of.

import { AppError } from "../core/errors.ts";
import type { Model, ModelSettings } from "../core/model.ts";

export interface ModelOptions {
  /** `provider:model`. */
  readonly name: string;
  /** As the provider calls it. */
  readonly model: string;
  readonly baseUrl: string;
  readonly key: Key;
  /** Where a request says nothing else. */
  readonly settings: ModelSettings;
  readonly fallback?: Model;
}

/** A provider's key, or what to do to have one. */
export type Key = { readonly secret: string } | { readonly missing: string };

/** Throws `model_auth` for a key that is missing, or that no header can carry. */
export function secretOf(key: Key, model: string): string {
  if ("missing" in key) throw new AppError("model_auth", `There is no key for \`${model}\`. ${key.missing}`);
  if (/^[\x21-\x7e]+$/.test(key.secret)) return key.secret;
  throw new AppError(
    "model_auth",
    `The key for \`${model}\` holds a blank or a character that no key has. Copy it again.`,
  );
}
