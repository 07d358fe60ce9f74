// The first API key of a deployment, which an operator sets in `BOOTSTRAP_API_KEY`. It is meant for environments
// without a command line, such as containers. The server stores it at startup, like any other key.

import { z } from "zod";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { type ApiKeyStore, readApiKey, SECRET_LENGTH } from "./api-keys.ts";
import { Scope } from "./principal.ts";

/** A random secret of 43 characters has about 31 distinct characters. The probability of fewer than 16 is 1 in 10^15. */
const FEWEST_DIFFERENT = 16;

const isRandom = (key: string) => new Set(key.slice(-SECRET_LENGTH)).size >= FEWEST_DIFFERENT;

/** The value is a secret, so the error must not repeat it. */
export const BootstrapKey = z.string().refine((text) => readApiKey(text) !== undefined && isRandom(text), {
  message:
    "is not a random key: use one that `skein keys generate` prints, `sk_` with 22 and 43 random characters",
});

/** The bootstrap key belongs to the user `admin` and has all scopes. */
const ABOUT = { tenant: "default", user: "admin", scopes: Scope.options, name: "BOOTSTRAP_API_KEY" };

/**
 * Stores the key unless it is already stored, so a revoked key stays revoked. Several processes may call this at once.
 * Throws `config_invalid` if the id belongs to a key with another secret.
 */
export async function keepBootstrapKey(store: ApiKeyStore, text: string, logger: Logger): Promise<void> {
  const { id, hash } = readApiKey(text) ?? { id: "", hash: "" };
  if (await create(store, { id, hash })) {
    logger.info({ key_id: id }, "the key of BOOTSTRAP_API_KEY was created");
    return;
  }
  const found = await store.find(id);
  if (found?.hash !== hash)
    throw new AppError(
      "config_invalid",
      `BOOTSTRAP_API_KEY has the id of another key, ${id}. Generate another one with \`skein keys generate\`.`,
    );
  if (found.revoked_at)
    logger.warn({ key_id: id }, "the key in BOOTSTRAP_API_KEY is revoked and remains revoked");
}

async function create(store: ApiKeyStore, key: { id: string; hash: string }): Promise<boolean> {
  try {
    await store.create({ ...ABOUT, ...key });
    return true;
  } catch (error) {
    if (hasCode(error, "already_exists")) return false;
    throw error;
  }
}
