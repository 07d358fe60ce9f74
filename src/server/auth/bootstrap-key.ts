// The first API key of a deployment whose command line is out of reach, as in a container: given by the operator, kept
// at the start as any other key.

import { z } from "zod";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { type ApiKeyStore, readApiKey, SECRET_LENGTH } from "./api-keys.ts";
import { Scope } from "./principal.ts";

/** The 43 random characters of a secret have about 31 different ones; fewer than these, once in 10^15 keys. */
const FEWEST_DIFFERENT = 16;

const isRandom = (key: string) => new Set(key.slice(-SECRET_LENGTH)).size >= FEWEST_DIFFERENT;

/** A secret: the error must not repeat it. */
export const BootstrapKey = z.string().refine((text) => readApiKey(text) !== undefined && isRandom(text), {
  message:
    "is no key that cannot be guessed: give one that `skein keys generate` prints, sk_ with 22 and 43 random characters",
});

/** What the key may do: everything, for a user of its own. */
const ABOUT = { tenant: "default", user: "admin", scopes: Scope.options, name: "BOOTSTRAP_API_KEY" };

/**
 * Keeps the key, unless it is kept already: then nothing changes, so that a key that was revoked stays revoked. Several
 * processes may do so at once. Throws `config_invalid` when its id belongs to another key.
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
      `BOOTSTRAP_API_KEY has the id of another key, ${id}. Generate a new one: \`skein keys generate\`.`,
    );
  if (found.revoked_at) logger.warn({ key_id: id }, "the key of BOOTSTRAP_API_KEY is revoked and stays so");
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
