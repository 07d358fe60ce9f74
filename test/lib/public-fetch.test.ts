import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { FetchError } from "../../src/lib/fetch-error.ts";
import { hostList } from "../../src/lib/host-list.ts";
import { createPublicFetch, type PublicFetchOptions } from "../../src/lib/public-fetch.ts";
import { httpServer, json, type LocalServer, tcpServer } from "../support/hostile.ts";

const MIB = 1024 * 1024;
const NEVER = new AbortController().signal;

/** The body, or how it failed. */
async function get(url: string, options: PublicFetchOptions = {}, signal = NEVER) {
  const fetch = createPublicFetch(options);
  try {
    await using response = await fetch(url, { method: "POST", headers: { a: "b" }, body: "{}", signal });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.read(MIB)) chunks.push(chunk);
    return { status: response.status, text: Buffer.concat(chunks).toString() };
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    return { failure: error.failure, message: error.message };
  }
}

const allowing = ({ port }: LocalServer): PublicFetchOptions => ({ allow: hostList(`127.0.0.1:${port}`) });
const REFUSED = { failure: "forbidden", message: "its host has no public address" };

describe("what leads inside is never called", () => {
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

  test("a name that has another address the next time it is asked for", async () => {
    const server = await httpServer(json({}));
    const addresses = [["93.184.216.34"], ["127.0.0.1"]];
    const resolve = async () => addresses.shift() ?? [];
    const stop = new AbortController();
    const first = get(`http://rebind.example:${server.port}/`, { resolve }, stop.signal).catch(() => {});
    await vi.waitFor(() => expect(addresses).toHaveLength(1));
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
  });

  test("a redirect, wherever it leads", async () => {
    const inside = await httpServer(json({ secret: true }));
    const server = await httpServer((_, response) =>
      response.writeHead(307, { location: `${inside.url}/` }).end("moved"),
    );
    expect(await get(server.url, allowing(server))).toEqual({ status: 307, text: "moved" });
    expect(inside.heard).toEqual([]);
  });

  test("a proxy of the environment's", async () => {
    const proxy = await httpServer(json({ proxied: true }));
    const server = await httpServer(json({ proxied: false }));
    vi.stubEnv("HTTP_PROXY", proxy.url);
    vi.stubEnv("http_proxy", proxy.url);
    expect(await get(server.url, allowing(server))).toMatchObject({ text: '{"proxied":false}' });
    vi.unstubAllEnvs();
  });
});

describe("what the operator allows", () => {
  test("is called, and nothing beside it", async () => {
    const server = await httpServer(json({ ok: true }));
    const other = await httpServer(json({ ok: true }));
    expect(await get(server.url, allowing(server))).toEqual({ status: 200, text: '{"ok":true}' });
    expect(server.heard).toMatchObject([{ method: "POST", body: "{}", headers: { a: "b" } }]);
    expect(await get(other.url, allowing(server))).toEqual(REFUSED);
    expect(await get(`http://localhost:${server.port}`, allowing(server))).toEqual(REFUSED);
  });

  test("is called at the address that was checked: the name is not looked up again", async () => {
    const server = await httpServer(json({ ok: true }));
    const addresses = [["127.0.0.1"], ["127.0.0.2"]];
    const options = { allow: () => true, resolve: async () => addresses.shift() ?? [] };
    // There is no such name: a second look at the system's own would find nothing.
    expect(await get(`http://rebind.invalid:${server.port}/`, options)).toMatchObject({ status: 200 });
    expect(addresses).toHaveLength(1);
  });

  test("is called by name, at the address that was found", async () => {
    const server = await httpServer(json({ ok: true }));
    const options = { allow: hostList("tools.internal"), resolve: async () => ["127.0.0.1"] };
    expect(await get(`http://tools.internal:${server.port}/a?b=c`, options)).toMatchObject({ status: 200 });
    expect(server.heard).toMatchObject([
      { path: "/a?b=c", headers: { host: `tools.internal:${server.port}`, "accept-encoding": "identity" } },
    ]);
    const system = { allow: hostList(`localhost:${server.port}`) };
    expect(await get(`http://localhost:${server.port}/`, system)).toMatchObject({ status: 200 });
  });

  test("is tried at its other addresses when one does not answer", async () => {
    const server = await httpServer(json({ ok: true }));
    const options = { allow: () => true, resolve: async () => ["::1", "127.0.0.1"] };
    expect(await get(`http://tools.internal:${server.port}/`, options)).toMatchObject({ status: 200 });
  });
});

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

describe("an answer", () => {
  const answered = async (server: LocalServer) => get(server.url, allowing(server));

  test("without end is cut off", async () => {
    const server = await httpServer((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(65_536))) {}
      };
      response.on("drain", more);
      more();
    });
    expect(await answered(server)).toEqual({
      failure: "unreadable",
      message: "the answer is larger than 1024 KiB",
    });
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });

  test("with huge headers is refused", async () => {
    const server = await tcpServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      for (let n = 0; n < 100; n++) socket.write(`x-${n}: ${"y".repeat(1000)}\r\n`);
      socket.write("content-length: 0\r\n\r\n");
    });
    expect(await answered(server)).toEqual({
      failure: "unreadable",
      message: "the answer's headers are larger than 16 KiB",
    });
  });

  test.each([
    ["a status", "HTTP/1.1 200 ", "y".repeat(60_000)],
    ["empty lines", "", "\r\n".repeat(30_000)],
    ["headers", "HTTP/1.1 200 OK\r\n", `x: ${"y".repeat(1000)}\r\n`],
    ["hints before it", "", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(1000)],
    ["a chunk's extension", `${CHUNKED}1;a=`, "b".repeat(60_000)],
    ["a chunk's size", CHUNKED, "0".repeat(60_000)],
    ["trailers", `${CHUNKED}0\r\n`, "x: y\r\n".repeat(9000)],
  ])("that has %s without end is cut off", async (_, head, unit) => {
    const server = await tcpServer((socket) => {
      socket.write(head);
      const more = () => {
        while (!socket.destroyed && socket.write(unit)) {}
      };
      socket.on("drain", more);
      more();
    });
    expect(await answered(server)).toMatchObject({ failure: "unreadable" });
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });

  test.each([
    ["what is no HTTP", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    [
      "a length and chunks",
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["half a body", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nab"],
    ["half of the headers", "HTTP/1.1 200 OK\r\nx: "],
    ["nothing", ""],
    ["another protocol", "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
  ])("of %s is one that broke", async (_, bytes) => {
    const server = await tcpServer((socket) => void socket.once("data", () => socket.end(bytes)));
    expect(await answered(server)).toMatchObject({ failure: "broken" });
  });

  test("that is compressed is not unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(50 * MIB));
    const server = await httpServer((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
    );
    expect(await answered(server)).toMatchObject({
      failure: "unreadable",
      message: expect.stringMatching("compressed"),
    });
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });

  test("that breaks off in the middle is told from one that never came", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200).write("half");
      setImmediate(() => response.socket?.resetAndDestroy());
    });
    expect(await answered(server)).toMatchObject({
      failure: "broken",
      message: expect.stringMatching(/broke|cut off/),
    });
    // Port 1 of this machine is nobody's.
    expect(await get("http://127.0.0.1:1/", { allow: () => true })).toEqual({
      failure: "unreachable",
      message: "no connection could be made (ECONNREFUSED)",
    });
  });

  test("of another's certificate is not believed, and nothing was sent", async () => {
    const server = await httpServer(json({}));
    const secure = await get(`https://127.0.0.1:${server.port}/`, allowing(server));
    expect(secure).toMatchObject({ failure: "unreachable" });
    expect(server.heard).toEqual([]);
  });
});

describe("an abort", () => {
  const REASON = new Error("enough");

  test.each<[when: string, answer: Parameters<typeof httpServer>[0]]>([
    ["before there is an answer", () => {}],
    ["in the middle of the headers", (_, response) => response.socket?.write("HTTP/1.1 200 OK\r\nx: ")],
    ["in the middle of the body", (_, response) => response.writeHead(200).write("half")],
  ])("%s ends the request at once", async (_, answer) => {
    const server = await httpServer(answer);
    const stop = new AbortController();
    const getting = get(server.url, allowing(server), stop.signal);
    const refused = expect(getting).rejects.toBe(REASON);
    await vi.waitFor(() => expect(server.heard).toHaveLength(1));
    stop.abort(REASON);
    await refused;
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });

  test("ends the looking up of a name, too", async () => {
    const stop = new AbortController();
    const asked = Promise.withResolvers<void>();
    const resolve = () => {
      asked.resolve();
      return new Promise<string[]>(() => {});
    };
    const getting = get("http://slow.example/", { resolve }, stop.signal);
    const refused = expect(getting).rejects.toBe(REASON);
    await asked.promise;
    stop.abort(REASON);
    await refused;
  });

  test("that came before keeps anything from being sent", async () => {
    const server = await httpServer(json({}));
    await expect(get(server.url, allowing(server), AbortSignal.abort(REASON))).rejects.toBe(REASON);
    expect(server.open()).toBe(0);
  });

  test("ends an answer that drips, when the time is over", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    });
    const slow = get(server.url, allowing(server), AbortSignal.timeout(300));
    await expect(slow).rejects.toMatchObject({ name: "TimeoutError" });
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });
});

test("no connection is left behind by an answer that nobody reads", async () => {
  const server = await httpServer(json({ long: "x".repeat(500_000) }));
  const fetch = createPublicFetch(allowing(server));
  for (let n = 0; n < 5; n++) {
    await using response = await fetch(server.url, { method: "POST", headers: {}, signal: NEVER });
    expect(response.status).toBe(200);
  }
  await vi.waitFor(() => expect(server.open()).toBe(0));
});
