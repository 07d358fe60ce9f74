// `skein threads`: exports and imports a user's threads.

import { AppError } from "../../../agent/core/errors.ts";
import type { ThreadStore } from "../../../agent/core/stores.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { loadServerConfig } from "../../../server/config/load.ts";
import { openStores } from "../../app/stores.ts";
import { t } from "../texts.ts";
import { exportThreads } from "./export.ts";
import { importThreads } from "./import.ts";
import { remoteThreads } from "./remote.ts";

interface OwnerOptions {
  readonly tenant?: string | undefined;
  readonly user?: string | undefined;
}

/** Exports from a running server if `url` is set, otherwise from the store. Throws `invalid_request`. */
export async function exportTo(
  dir: string,
  { url, ...whose }: OwnerOptions & { readonly url?: string | undefined },
  env: NodeJS.ProcessEnv,
): Promise<number> {
  if (url === undefined) return inStore(whose, env, (store, owner) => exportThreads(store, owner, dir));
  if (whose.user !== undefined || whose.tenant !== undefined)
    throw new AppError("invalid_request", t().threads.ownerFromKey);
  // The server identifies the owner by the key.
  const owner = { tenant: "", user: "" };
  return say(await exportThreads(remoteThreads({ url, key: env.SKEIN_API_KEY }), owner, dir));
}

export function importFrom(
  dir: string,
  { resume: resumes, ...whose }: OwnerOptions & { readonly resume?: boolean | undefined },
  env: NodeJS.ProcessEnv,
): Promise<number> {
  return inStore(whose, env, (store, owner) => importThreads(store, owner, dir, { resumes }));
}

/** Opens the configured store for `act`. If it is a SQLite store, no server may be using it. */
async function inStore(
  whose: OwnerOptions,
  env: NodeJS.ProcessEnv,
  act: (store: ThreadStore, owner: Owner) => Promise<string>,
): Promise<number> {
  const config = await loadServerConfig(env);
  // Without authentication, there is only one owner.
  const { tenant = "default", user = config.auth.scheme === "none" ? "default" : undefined } = whose;
  if (user === undefined) throw new AppError("invalid_request", t().threads.ownerMissing);
  const stores = await openStores(config);
  try {
    if (!stores.isDurable) throw new AppError("invalid_request", t().threads.notDurable);
    return say(await act(stores.threads, { tenant, user }));
  } finally {
    await stores.close();
  }
}

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}
