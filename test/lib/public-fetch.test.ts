import { describe, expect, test, vi } from "vitest";
import { hostList } from "../../src/lib/hosts.ts";
import { httpUrl, isRefused } from "../../src/lib/ssrf-safe-fetch/index.ts";
import { httpServer, json } from "../support/hostile.ts";
import { allowing, get, NEVER } from "../support/public-fetch.ts";

const REFUSED = { failure: "forbidden", message: "its host has no public address" };

describe("a URL is refused before it is called", () => {
  const refused = (host: string, addresses: readonly string[] = [], allow = "") =>
    isRefused(new URL(`http://${host}/`), { allow: hostList(allow), resolve: async () => addresses }, NEVER);

  test.each([
    "127.0.0.1",
    "127.1",
    "2130706433",
    "[::1]",
    "[fd00::1]",
    "169.254.169.254",
    "localhost",
    "a.localhost.",
  ])("%s, unless it is allowed", async (host) => {
    expect(await refused(host)).toBe(true);
    expect(await refused(host, [], new URL(`http://${host}`).hostname)).toBe(false);
  });

  test("if its name has a private address now, but not if it has none yet", async () => {
    expect(await refused("tool.example", ["10.0.0.5"])).toBe(true);
    expect(await refused("tool.example", ["93.184.216.34", "10.0.0.5"])).toBe(true);
    expect(await refused("tool.example", ["93.184.216.34"])).toBe(false);
    expect(await refused("93.184.216.34")).toBe(false);
    expect(await refused("tool.example", [])).toBe(false);
  });

  test("but not if its name cannot be resolved in time", async () => {
    const resolve = () => new Promise<never>(() => {});
    expect(await isRefused(new URL("http://tool.example/"), { resolve }, AbortSignal.abort())).toBe(false);
  });
});

describe("internal addresses are never called", () => {
  test.each([
    ...["127.0.0.1", "localhost", "localhost.", "127.1", "127.0.1", "0x7f000001", "0x7f.1", "2130706433"],
    ...["017700000001", "0177.0.0.1", "127.0.0.1.", "0", "0.0.0.0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]"],
    ...["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "127.000.000.001", "１２７.0.0.1", "①②⑦.1"],
    ...["[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00::1]", "[fe80::1]", "10.0.0.1", "100.64.0.1"],
    ...["169.254.169.254", "168.63.129.16", "metadata.google.internal", "%6cocalhost"],
  ])("%s", async (host) => {
    const server = await httpServer(json({}));
    expect(await get(`http://${host}:${server.port}/`)).toEqual(REFUSED);
    expect(server.heard).toEqual([]);
    expect(server.open()).toBe(0);
  });

  test.each([
    ["a name for this machine", ["127.0.0.1"]],
    ["a name for a cloud's inside", ["169.254.169.254"]],
    ["a public address beside a private one", ["93.184.216.34", "127.0.0.1"]],
    ["a public address beside a private one of the other family", ["93.184.216.34", "::1"]],
    ["an IPv4 address in disguise", ["::ffff:127.0.0.1"]],
    ["nothing", []],
    ["what is no address", ["localhost"]],
  ])("a name that has %s", async (_, addresses) => {
    const server = await httpServer(json({}));
    const resolve = async () => addresses;
    expect(await get(`http://tool.example:${server.port}/`, { resolve })).toEqual(REFUSED);
    expect(server.heard).toEqual([]);
  });

  test("a name that resolves to another address the next time", async () => {
    const server = await httpServer(json({}));
    const addresses = [["93.184.216.34"], ["127.0.0.1"]];
    const resolve = async () => addresses.shift() ?? [];
    const stop = new AbortController();
    const first = get(`http://rebind.example:${server.port}/`, { resolve }, stop.signal).catch(() => {});
    await expect.poll(() => addresses).toHaveLength(1);
    expect(await get(`http://rebind.example:${server.port}/`, { resolve })).toEqual(REFUSED);
    stop.abort();
    await first;
    expect(server.heard).toEqual([]);
  });

  test.each([
    "ftp://example.com/",
    "file:///etc/passwd",
    "unix:/var/run/docker.sock",
    "data:application/json,{}",
    "javascript:1",
    "//example.com/",
    "example.com",
    "",
    "http://",
    "https://user:password@example.com/",
    "https://user@example.com/",
  ])("%s", async (url) => {
    expect(await get(url)).toMatchObject({ failure: "forbidden" });
    expect(() => httpUrl(url)).toThrow(/does not begin with http|a user name or a password/);
  });

  test("a redirect to any target", async () => {
    const inside = await httpServer(json({ secret: true }));
    const server = await httpServer((_, response) =>
      response.writeHead(307, { location: `${inside.url}/` }).end("moved"),
    );
    expect(await get(server.url, allowing(server))).toEqual({ status: 307, text: "moved" });
    expect(inside.heard).toEqual([]);
  });

  test("a proxy from the environment", async () => {
    const proxy = await httpServer(json({ proxied: true }));
    const server = await httpServer(json({ proxied: false }));
    vi.stubEnv("HTTP_PROXY", proxy.url);
    vi.stubEnv("http_proxy", proxy.url);
    expect(await get(server.url, allowing(server))).toMatchObject({ text: '{"proxied":false}' });
    vi.unstubAllEnvs();
  });
});

describe("an address that the operator allows", () => {
  test("is called, but no others", async () => {
    const server = await httpServer(json({ ok: true }));
    const other = await httpServer(json({ ok: true }));
    expect(await get(server.url, allowing(server))).toEqual({ status: 200, text: '{"ok":true}' });
    expect(server.heard).toMatchObject([{ method: "POST", body: "{}", headers: { a: "b" } }]);
    expect(await get(other.url, allowing(server))).toEqual(REFUSED);
    expect(await get(`http://localhost:${server.port}`, allowing(server))).toEqual(REFUSED);
  });

  test("is called at the checked address, without resolving the name again", async () => {
    const server = await httpServer(json({ ok: true }));
    const addresses = [["127.0.0.1"], ["127.0.0.2"]];
    const options = { allow: () => true, resolve: async () => addresses.shift() ?? [] };
    // There is no such name: a second look at the system's own would find nothing.
    expect(await get(`http://rebind.invalid:${server.port}/`, options)).toMatchObject({ status: 200 });
    expect(addresses).toHaveLength(1);
  });

  test("is called by name, at the resolved address", async () => {
    const server = await httpServer(json({ ok: true }));
    const options = { allow: hostList("tools.internal"), resolve: async () => ["127.0.0.1"] };
    expect(await get(`http://tools.internal:${server.port}/a?b=c`, options)).toMatchObject({ status: 200 });
    expect(server.heard).toMatchObject([
      { path: "/a?b=c", headers: { host: `tools.internal:${server.port}`, "accept-encoding": "identity" } },
    ]);
    const system = { allow: hostList(`localhost:${server.port}`) };
    expect(await get(`http://localhost:${server.port}/`, system)).toMatchObject({ status: 200 });
  });

  test("is replaced by the name's other addresses if it does not respond", async () => {
    const server = await httpServer(json({ ok: true }));
    const options = { allow: () => true, resolve: async () => ["::1", "127.0.0.1"] };
    expect(await get(`http://tools.internal:${server.port}/`, options)).toMatchObject({ status: 200 });
  });
});
