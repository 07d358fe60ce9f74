// A host outside that speaks TLS, and a vault with the secrets for it.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { localWrapper } from "../../../src/engine/vault/cipher.ts";
import { createVault } from "../../../src/engine/vault/index.ts";
import { createPublicFetch } from "../../../src/lib/ssrf-safe-fetch/index.ts";
import { newAuthority } from "../../../src/sandbox/egress/authority.ts";
import type { Heard } from "../../support/hostile.ts";

type Authority = Awaited<ReturnType<typeof newAuthority>>;
type Done = (error: null, context: ReturnType<Authority["contextFor"]>) => void;

/** Its certificate is of an authority of its own. `onEnd` is when it is not needed any more. */
export async function secretHost(
  answer: (heard: Heard, response: ServerResponse) => unknown,
  onEnd: (close: () => void) => void,
) {
  const authority = await newAuthority(["example"]);
  const heard: Heard[] = [];
  const options = { SNICallback: (host: string, done: Done) => done(null, authority.contextFor(host)) };
  const server = createServer(options, async (asked, response) => {
    const { method = "", url: path = "", headers } = asked;
    const its = { method, path, headers, body: await text(asked).catch(() => "cut") };
    heard.push(its);
    await answer(its, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { heard, authority, port: (server.address() as AddressInfo).port };
}

export const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

/** A vault, and the ids of the connections that were used. */
export function newVault() {
  const { documents } = createMemoryStores();
  const used: string[] = [];
  const vault = createVault({
    ...{ documents, logger: SILENT, most: 9, previousKeys: [] },
    ...{ key: localWrapper(randomBytes(32).toString("base64")), fetch: createPublicFetch() },
    onUse: (_, id) => void used.push(id),
  });
  return { vault, used };
}
