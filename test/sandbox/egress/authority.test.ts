import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { newAuthority } from "../../../src/sandbox/egress/authority.ts";

const authority = await newAuthority(["api.example.com", "*.wild.example"]);

/** The certificate of a server for `host`, or why a client refuses it. */
async function seen(host: string) {
  const server = createServer(
    { SNICallback: (name, end) => end(null, authority.contextFor(name)) },
    () => {},
  );
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: "127.0.0.1", port, servername: host, ca: authority.certificate });
  onTestFinished(() => void socket.destroy());
  return Promise.race([
    once(socket, "secureConnect").then(() => socket.getPeerX509Certificate()),
    once(socket, "close").then(() => undefined),
  ]).catch(({ message }: Error) => message);
}

test("clients that trust it trust its certificates for its hosts and no others", async () => {
  const root = new X509Certificate(authority.certificate);
  for (const host of ["api.example.com", "a.wild.example", "a.b.wild.example"]) {
    const found = await seen(host);
    expect(found).toBeInstanceOf(X509Certificate);
    expect((found as X509Certificate).checkHost(host)).toBe(host);
    expect((found as X509Certificate).verify(root.publicKey)).toBe(true);
  }
  for (const host of ["example.com", "evil.example", "api.example.com.evil.example"])
    expect(await seen(host)).toBe("permitted subtree violation");
});

test("it is an authority, and nothing that it has signed is one", async () => {
  const root = new X509Certificate(authority.certificate);
  expect([root.ca, root.checkIssued(root)]).toEqual([true, true]);
  const leaf = (await seen("api.example.com")) as X509Certificate;
  expect([leaf.ca, leaf.keyUsage]).toEqual([false, ["1.3.6.1.5.5.7.3.1"]]);
  expect(Date.parse(leaf.validTo)).toBeLessThan(Date.now() + 8 * 86_400_000);
});

test("two authorities share nothing", async () => {
  const other = await newAuthority(["api.example.com"]);
  const [one, two] = [authority, other].map(({ certificate }) => new X509Certificate(certificate));
  expect(two?.subject).not.toBe(one?.subject);
  expect(two?.verify(one?.publicKey as never)).toBe(false);
});
