import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createPublicFetch } from "../../src/lib/ssrf-safe-fetch/index.ts";
import { httpServer, json, type LocalServer, tcpServer } from "../support/hostile.ts";
import { allowing, get, MIB, NEVER } from "../support/public-fetch.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

describe("a response", () => {
  const answered = async (server: LocalServer) => get(server.url, allowing(server));

  test("that never ends is cut off", async () => {
    const server = await httpServer((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(65_536))) {}
      };
      response.on("drain", more);
      more();
    });
    expect(await answered(server)).toEqual({
      failure: "unreadable",
      message: "the response is larger than 1024 KiB",
    });
    await expect.poll(() => server.open()).toBe(0);
  });

  test("with huge headers is refused", async () => {
    const server = await tcpServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      for (let n = 0; n < 100; n++) socket.write(`x-${n}: ${"y".repeat(1000)}\r\n`);
      socket.write("content-length: 0\r\n\r\n");
    });
    expect(await answered(server)).toEqual({
      failure: "unreadable",
      message: "the response headers are larger than 16 KiB",
    });
  });

  test.each([
    ["a status", "HTTP/1.1 200 ", "y".repeat(60_000)],
    ["empty lines", "", "\r\n".repeat(30_000), "is larger than 16384 KiB"],
    ["headers", "HTTP/1.1 200 OK\r\n", `x: ${"y".repeat(1000)}\r\n`],
    ["hints before it", "", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(1000)],
    ["a chunk's extension", `${CHUNKED}1;a=`, "b".repeat(60_000)],
    ["a chunk's size", CHUNKED, "0".repeat(60_000)],
    ["trailers", `${CHUNKED}0\r\n`, "x: y\r\n".repeat(9000)],
  ])("with endless %s is cut off", async (_, head, unit, words = "") => {
    const server = await tcpServer((socket) => {
      socket.write(head);
      const more = () => {
        while (!socket.destroyed && socket.write(unit)) {}
      };
      socket.on("drain", more);
      more();
    });
    expect(await answered(server)).toMatchObject({
      ...{ failure: "unreadable", message: expect.stringContaining(words) },
    });
    await expect.poll(() => server.open()).toBe(0);
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
  ])("of %s counts as broken", async (_, bytes) => {
    const server = await tcpServer((socket) => void socket.once("data", () => socket.end(bytes)));
    expect(await answered(server)).toMatchObject({ failure: "broken" });
  });

  test("that is compressed is not decompressed", async () => {
    const bomb = gzipSync(Buffer.alloc(50 * MIB));
    const server = await httpServer((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
    );
    expect(await answered(server)).toMatchObject({
      failure: "unreadable",
      message: expect.stringMatching("compressed"),
    });
    await expect.poll(() => server.open()).toBe(0);
  });

  test("that breaks off is distinguished from one that never arrived", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200).write("half");
      setImmediate(() => response.socket?.resetAndDestroy());
    });
    expect(await answered(server)).toMatchObject({
      failure: "broken",
      message: expect.stringMatching(/broke|cut off/),
    });
    // Nothing listens on port 1 of this machine.
    expect(await get("http://127.0.0.1:1/", { allow: () => true })).toEqual({
      failure: "unreachable",
      message: "no connection could be made (ECONNREFUSED)",
    });
  });

  test("with another host's certificate is not trusted, and nothing was sent", async () => {
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
  ])("%s ends the request immediately", async (_, answer) => {
    const server = await httpServer(answer);
    const stop = new AbortController();
    const getting = get(server.url, allowing(server), stop.signal);
    const refused = expect(getting).rejects.toBe(REASON);
    await expect.poll(() => server.heard).toHaveLength(1);
    stop.abort(REASON);
    await refused;
    await expect.poll(() => server.open()).toBe(0);
  });

  test("ends a name lookup too", async () => {
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

  test("before the request prevents anything from being sent", async () => {
    const server = await httpServer(json({}));
    await expect(get(server.url, allowing(server), AbortSignal.abort(REASON))).rejects.toBe(REASON);
    expect(server.open()).toBe(0);
  });

  test("ends a slow response when the time is over", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    });
    const slow = get(server.url, allowing(server), AbortSignal.timeout(300));
    await expect(slow).rejects.toMatchObject({ name: "TimeoutError" });
    await expect.poll(() => server.open()).toBe(0);
  });
});

test("no connection is left behind by a response that is not read", async () => {
  const server = await httpServer(json({ long: "x".repeat(500_000) }));
  const fetch = createPublicFetch(allowing(server));
  for (let n = 0; n < 5; n++) {
    await using response = await fetch(server.url, { method: "POST", headers: {}, signal: NEVER });
    expect(response.status).toBe(200);
  }
  await expect.poll(() => server.open()).toBe(0);
});
