import { execFile } from "node:child_process";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  httpFetch,
  readCapped,
  readWhile,
  release,
  streamOf,
  unusedProxy,
} from "../../src/lib/http-fetch.ts";
import { NODE_ENV } from "../support/node.ts";

const run = promisify(execFile);

async function serving(listener: RequestListener) {
  let connections = 0;
  const server = createServer(listener).on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // A server that listens on TCP has such an address.
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, connections: () => connections };
}

async function bodyOf(response: Response) {
  const stream = streamOf(response);
  if (!stream) throw new Error("not a stream");
  return stream;
}

describe("a request", () => {
  test("sends its method, headers and body", async () => {
    const { url } = await serving(async (request, response) => {
      const { method, headers } = request;
      response.end(JSON.stringify({ method, headers, body: await readCapped(request, 1000) }));
    });
    const response = await httpFetch(`${url}x`, {
      ...{ method: "POST", body: "žluťoučký", headers: new Headers({ "X-Team": "a" }) },
    });
    expect(JSON.parse(await readCapped(await bodyOf(response), 10_000))).toMatchObject({
      method: "POST",
      headers: { "x-team": "a", "content-length": "13", "accept-encoding": "identity" },
      body: "žluťoučký",
    });
  });

  test("fails when its signal aborts, before and after the headers", async () => {
    const { url } = await serving((request, response) => {
      if (request.url === "/late") response.write("begun");
    });
    const silent = new AbortController();
    const unanswered = httpFetch(url, { signal: silent.signal });
    silent.abort();
    await expect(unanswered).rejects.toThrow(/abort/i);

    const late = new AbortController();
    const stream = await bodyOf(await httpFetch(`${url}late`, { signal: late.signal }));
    late.abort();
    await expect(readCapped(stream, 1000)).rejects.toThrow();
    expect(stream.destroyed).toBe(true);
  });

  test("fails if the port is closed", async () => {
    await expect(httpFetch("http://127.0.0.1:1/")).rejects.toThrow("ECONNREFUSED");
    await expect(httpFetch("http://127.0.0.1:1/", { method: "POST", body: new FormData() })).rejects.toThrow(
      TypeError,
    );
  });
});

describe("a response", () => {
  test("with an error status is read immediately, but not endlessly", async () => {
    const { url } = await serving((_, response) => {
      response.writeHead(503, { "retry-after": "7" });
      response.end("x".repeat(10 * 1024 * 1024));
    });
    const response = await httpFetch(url);
    expect(streamOf(response)).toBeUndefined();
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "7"]);
    expect((await response.text()).length).toBe(64 * 1024);
  });

  test("is not read beyond its limit, however small its pieces are", async () => {
    let sent = 0;
    async function* pieces() {
      for (; sent < 1000; sent++) yield Buffer.from("x");
    }
    expect(await readCapped(Readable.from(pieces()), 10)).toBe("x".repeat(10));
    expect(sent).toBeLessThan(1000);
  });

  test("that redirects is returned, not followed", async () => {
    const { url } = await serving(
      (_, response) => void response.writeHead(302, { location: "/other" }).end(),
    );
    expect((await httpFetch(url)).status).toBe(302);
  });

  test("is read as far as its reader wants, in turns, and to its end", async () => {
    const { url } = await serving((_, response) => void response.end("x".repeat(1_000_000)));
    const stream = await bodyOf(await httpFetch(url));
    const sizes: number[] = [];
    const takeOne = (piece: Buffer) => sizes.push(piece.length) < 0;
    expect(await readWhile(stream, takeOne)).toBe(false);
    expect(sizes).toHaveLength(1);
    while (!(await readWhile(stream, takeOne)));
    expect(sizes.length).toBeGreaterThan(2);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_000_000);
  });

  test("whose reader throws, or whose connection breaks, throws that error", async () => {
    const { url } = await serving((_, response) => void response.write("begun"));
    const stream = await bodyOf(await httpFetch(url));
    const refusal = new Error("no");
    const refuse = () => {
      throw refusal;
    };
    await expect(readWhile(stream, refuse)).rejects.toBe(refusal);
    const rest = readWhile(stream, () => true);
    stream.destroy();
    await expect(rest).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
  });

  test("that is released leaves its connection to the next request", async () => {
    const { url, connections } = await serving((_, response) => void response.end("x".repeat(100_000)));
    for (let turn = 0; turn < 3; turn++) {
      const stream = await bodyOf(await httpFetch(url));
      const closed = new Promise((resolve) => stream.once("close", resolve));
      release(stream);
      await closed;
    }
    expect(connections()).toBe(1);
  });

  test("that never ends after its release is cut off", async () => {
    const { url } = await serving((_, response) => {
      const more = () =>
        void (response.destroyed || response.write("x".repeat(1000), () => setImmediate(more)));
      more();
    });
    const stream = await bodyOf(await httpFetch(url));
    const closed = new Promise((resolve) => stream.once("close", resolve));
    release(stream);
    await closed;
    expect(stream.destroyed).toBe(true);
  });
});

test.each([
  ["1", "the proxy"],
  ["0", "the server"],
])("with NODE_USE_ENV_PROXY=%s and a proxy in the environment, %s answers", async (flag, answers) => {
  const { url } = await serving((_, response) => response.end("the server"));
  const { url: proxy } = await serving((_, response) => response.end("the proxy"));
  const source = new URL("../../src/lib/http-fetch.ts", import.meta.url);
  const program = `
    import { httpFetch, readCapped, streamOf } from ${JSON.stringify(source.href)};
    process.stdout.write(await readCapped(streamOf(await httpFetch(${JSON.stringify(url)})), 100));
  `;
  const env = { ...NODE_ENV, HTTP_PROXY: proxy, NODE_USE_ENV_PROXY: flag };
  const child = await run(process.execPath, ["--input-type=module", "--eval", program], { env });
  expect(child.stdout).toBe(answers);
});

test("an error names an environment proxy that is not used, and the missing part", () => {
  expect(unusedProxy({ https_proxy: "http://proxy:3128" })).toBe(
    "https_proxy is set but not used: set NODE_USE_ENV_PROXY=1 as well",
  );
  expect(unusedProxy({ HTTPS_PROXY: "http://proxy:3128", NODE_USE_ENV_PROXY: "1" })).toBeUndefined();
  expect(unusedProxy({})).toBeUndefined();
});
