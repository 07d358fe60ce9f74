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
  const authority = await newAuthority(["example", "localhost"]);
  const heard: Heard[] = [];
  const options = { SNICallback: (host: string, done: Done) => done(null, authority.contextFor(host)) };
  const server = createServer(options, async (asked, response) => {
    const { method = "", url: path = "", headers } = asked;
    const its = { method, path, headers, body: await text(asked).catch(() => "cut") };
    heard.push(its);
    await answer(its, response);
  });
  let connections = 0;
  server.on("secureConnection", () => connections++);
  await once(server.listen(0, "127.0.0.1"), "listening");
  onEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { heard, authority, connections: () => connections, port: (server.address() as AddressInfo).port };
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
    onConsentsEnded() {},
  });
  return { vault, used };
}

/** Asks with the header that its second argument gives, as programs do that know the proxy and the authorities by variables. */
export const ASKING = String.raw`
import base64, os, re, socket, ssl, sys
url, header = sys.argv[1:3]
host, port, path = re.match(r"https://([^:/]+):(\d+)(/.*)", url).groups()
user, proxy = re.match(r"http://(.*)@127.0.0.1:(\d+)", os.environ["HTTPS_PROXY"]).groups()
plain = socket.create_connection(("127.0.0.1", int(proxy)))
auth = base64.b64encode(user.encode()).decode()
plain.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nProxy-Authorization: Basic {auth}\r\n\r\n".encode())
head = b""
while b"\r\n\r\n" not in head: head += plain.recv(1)
if b" 200 " not in head: sys.exit(head.decode())
context = ssl.create_default_context()
context.verify_flags |= ssl.VERIFY_X509_STRICT
secure = context.wrap_socket(plain, server_hostname=host)
secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{header}\r\nConnection: close\r\n\r\n".encode())
while True:
    piece = secure.recv(65536)
    if not piece: break
    sys.stdout.write(piece.decode())
`;
