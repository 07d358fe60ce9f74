// `skein keys`: the API keys in the store of this folder.

import type { ApiKeyStore } from "../../../server/auth/api-keys.ts";
import { loadServerConfig } from "../../../server/config/load.ts";
import { type Command, command } from "../command.ts";
import { createKey, generateKey, type KeyLine, listKeys, revokeKey } from "../keys.ts";
import { environment, FILES, show } from "./options.ts";

export const KEYS: readonly Command[] = [
  command({
    name: "keys create",
    about: (texts) => texts.commands.keysCreate,
    options: {
      user: { value: "NAME", about: (texts) => texts.options.keyUser, required: true },
      tenant: { value: "NAME", about: (texts) => texts.options.tenant },
      scopes: {
        value: "LIST",
        about: (texts) => texts.options.scopes,
      },
      name: { value: "TEXT", about: (texts) => texts.options.keyName },
      expires: { value: "WHEN", about: (texts) => texts.options.expires },
      config: FILES.config,
      data: FILES.data,
    },
    run: (values) => keys(environment(values), (store) => createKey(store, values)),
  }),
  command({
    name: "keys generate",
    about: (texts) => texts.commands.keysGenerate,
    options: {},
    run: async () => show(generateKey()),
  }),
  command({
    name: "keys list",
    about: (texts) => texts.commands.keysList,
    options: {
      tenant: { value: "NAME", about: (texts) => texts.options.keysOfTenant },
      config: FILES.config,
      data: FILES.data,
    },
    run: (values) => keys(environment(values), (store) => listKeys(store, values)),
  }),
  command({
    name: "keys revoke",
    argument: "ID",
    about: (texts) => texts.commands.keysRevoke,
    options: { config: FILES.config, data: FILES.data },
    run: (values, id = "") => keys(environment(values), (store) => revokeKey(store, id)),
  }),
];

/** Opens the configured store, even while a server is using it, and prints the result of `act`. */
async function keys(env: NodeJS.ProcessEnv, act: (store: ApiKeyStore) => Promise<KeyLine>): Promise<number> {
  const config = await loadServerConfig(env);
  const { openApiKeys } = await import("../../app/stores.ts");
  const { keys: store, close } = await openApiKeys(config);
  try {
    return show(await act(store));
  } finally {
    close();
  }
}
