import { request } from "node:http";
import { networkInterfaces } from "node:os";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { authenticateHeaders } from "../../../src/server/auth/index.ts";
import { needing } from "../../support/needing.ts";
import { guarded } from "./guarded.ts";

const ADA = ["X-Skein-Tenant", "acme", "X-Skein-User", "ada", "X-Skein-Scopes", "read run"];

const HAS_IPV6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === "::1"),
);

/** `ADA` with another value of one header, or without it. */
function but(name: string, value?: string): string[] {
  const at = ADA.indexOf(name);
  return value === undefined ? ADA.toSpliced(at, 2) : ADA.toSpliced(at + 1, 1, value);
}

interface Sending {
  readonly to?: string;
  /** The address of this machine that it is sent from. */
  readonly from?: string;
}

/** With headers as they are, also repeated and odd ones. */
function ask(
  port: number,
  headers: readonly string[],
  { to = "127.0.0.1", from = "127.0.0.1" }: Sending = {},
) {
  const all = ["host", "localhost", "connection", "close", ...headers];
  const options = { port, host: to, localAddress: from, path: "/threads/t", headers: all };
  return new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
    const outgoing = request(options, async (response) =>
      resolve({ status: response.statusCode, body: await json(response) }),
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

const server = (trusted: string[], host?: string) =>
  guarded(authenticateHeaders(trusted), host === undefined ? {} : { host });

describe("a trusted gateway", () => {
  test.each([
    ["by its address", "127.0.0.1"],
    ["by its network", "127.0.0.0/30"],
  ])("is trusted if it is known %s", async (_, trusted) => {
    const { port } = await server([trusted]);
    expect(await ask(port, ADA)).toEqual({
      status: 200,
      body: { tenant: "acme", user: "ada", scopes: ["read", "run"], isGateway: true },
    });
  });

  needing(HAS_IPV6, "IPv6").test(
    "is identified by its IPv4 address even if the server listens on IPv6",
    async () => {
      const { port } = await server(["127.0.0.1"], "::");
      expect((await ask(port, ADA)).status).toBe(200);
      expect((await ask(port, ADA, { to: "::1", from: "::1" })).status).toBe(401);
    },
  );

  needing(HAS_IPV6, "IPv6").test("of an IPv6 network is identified by it", async () => {
    const { port } = await server(["::/127"], "::1");
    expect((await ask(port, ADA, { to: "::1", from: "::1" })).status).toBe(200);
  });

  test.each([
    ["read", ["read"]],
    ["read,run", ["read", "run"]],
    ["read, tools", ["read", "tools"]],
  ])("can write scopes as `%s`", async (text, scopes) => {
    const { port } = await server(["127.0.0.1"]);
    expect(await ask(port, but("X-Skein-Scopes", text))).toMatchObject({ status: 200, body: { scopes } });
  });

  test("grants only the scopes that it names", async () => {
    const { port } = await server(["127.0.0.1"]);
    expect(await ask(port, but("X-Skein-Scopes", "run"))).toMatchObject({
      status: 403,
      body: { details: { scope: "read" } },
    });
  });

  test.each<[string, string[]]>([
    ["no tenant", but("X-Skein-Tenant")],
    ["no user", but("X-Skein-User")],
    ["no scopes", but("X-Skein-Scopes")],
    ["an empty tenant", but("X-Skein-Tenant", "")],
    ["an empty user", but("X-Skein-User", " ")],
    ["empty scopes", but("X-Skein-Scopes", "")],
    ["two tenants", [...ADA, "x-skein-tenant", "other"]],
    ["the same user twice", [...ADA, "X-SKEIN-USER", "ada"]],
    ["scopes twice", [...ADA, "X-Skein-Scopes", "admin"]],
    ["two users that were joined", but("X-Skein-User", "eve, ada")],
    ["two users that were joined without a space", but("X-Skein-User", "eve,ada")],
    ["a user with a space", but("X-Skein-User", "ada lovelace")],
    ["a user with a tab", but("X-Skein-User", "ada\tx")],
    ["a user that is not ASCII", but("X-Skein-User", "ad\u00e4")],
    ["a user that is very long", but("X-Skein-User", "a".repeat(257))],
    ["a scope that is none", but("X-Skein-Scopes", "read,root")],
    ["a scope in capitals", but("X-Skein-Scopes", "READ")],
    ["very many scopes", but("X-Skein-Scopes", "read ".repeat(1000))],
  ])("that sends %s is refused", async (_, headers) => {
    const { port } = await server(["127.0.0.1"]);
    expect(await ask(port, headers)).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  });
});

describe("an untrusted address", () => {
  const OTHER = { from: "127.0.0.2" };

  test("authenticates no one, with any header", async () => {
    const { port } = await server(["127.0.0.1", "10.0.0.0/8"]);
    const claims = ["X-Forwarded-For", "127.0.0.1", "X-Real-IP", "127.0.0.1", "Forwarded", "for=127.0.0.1"];
    const refused = await ask(port, [...ADA, ...claims], OTHER);
    expect(refused).toMatchObject({ status: 401, body: { detail: expect.stringContaining("gateway") } });
    const { request_id: _, ...body } = refused.body as Record<string, unknown>;
    expect(await ask(port, [], OTHER)).toMatchObject({ status: 401, body });
    expect((await ask(port, ADA)).status).toBe(200);
  });

  test("is every address if none is configured", async () => {
    const { port } = await server([]);
    expect((await ask(port, ADA)).status).toBe(401);
  });
});
