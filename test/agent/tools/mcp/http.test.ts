// Servers over HTTP that forget, hang, flood and refuse.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { freePort } from "../../../support/free-port.ts";
import { call, eventually, namesOf, opened } from "./opened.ts";
import { answer, overHttp } from "./over-http.ts";

const text = (content: string) => ({ content: [{ type: "text", text: content }] });

test("an expired session is replaced, and the call is repeated", async () => {
  let calls = 0;
  const server = await overHttp({ echo: ({ id, response }) => answer(response, id, text(String(++calls))) });
  const servers = await opened({ far: { url: server.url } });
  expect((await call(servers, "mcp__far__echo")).text).toBe("1");
  server.forget();
  const results = await Promise.all(Array.from({ length: 5 }, () => call(servers, "mcp__far__echo")));
  expect(results.map((each) => each.text).sort()).toEqual(["2", "3", "4", "5", "6"]);
});

test("a call that a server refuses does not affect the session or other calls", async () => {
  let finish = () => {};
  let refused = 0;
  const server = await overHttp({
    slow: ({ id, response }) => (finish = () => answer(response, id, text("through"))),
    bad({ response }) {
      refused++;
      response.writeHead(400).end("bad request");
    },
  });
  const servers = await opened({ far: { url: server.url } });
  const slow = call(servers, "mcp__far__slow");
  expect((await call(servers, "mcp__far__bad")).error).toBe(
    "MCP server `far` rejects the request (HTTP 400).",
  );
  expect(refused).toBe(1);
  finish();
  expect(await slow).toMatchObject({ text: "through", error: undefined });
});

test("a cancelled call closes its connection immediately, and the server is notified", async () => {
  const closed = Promise.withResolvers<void>();
  const cancel = new AbortController();
  const server = await overHttp({
    hang({ response }) {
      response.once("close", () => closed.resolve());
      cancel.abort();
    },
  });
  const servers = await opened({ far: { url: server.url } });
  const { outcome } = await call(servers, "mcp__far__hang", {}, { input: { signal: cancel.signal } });
  expect(outcome.status).toBe("cancelled");
  await closed.promise;
});

test("progress keeps a call alive", async () => {
  const server = await overHttp({
    long({ id, response }) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const send = (message: object) =>
        response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
      for (const progress of [1, 2, 3])
        setTimeout(
          () => send({ method: "notifications/progress", params: { progressToken: id, progress } }),
          progress * 800,
        );
      setTimeout(() => {
        send({ id, result: text("through") });
        response.end();
      }, 3200);
    },
  });
  const servers = await opened({ far: { url: server.url, idle_timeout: 2.5 } });
  const { text: result, shown } = await call(servers, "mcp__far__long");
  expect(result).toBe("through");
  expect(shown.join("")).toBe("1\n2\n3\n");
});

const endlessly = (response: ServerResponse, type: string, begin: string) => {
  response.writeHead(200, { "content-type": type });
  response.write(begin);
  const more = () => {
    if (!response.destroyed) response.write("x".repeat(256 * 1024), () => setImmediate(more));
  };
  more();
};

test.each([
  ["an endless answer", (response: ServerResponse) => endlessly(response, "application/json", '"')],
  ["an endless event", (response: ServerResponse) => endlessly(response, "text/event-stream", "data: ")],
  [
    "a web page",
    (response: ServerResponse) => response.setHeader("content-type", "text/html").end("<p>hi</p>"),
  ],
  ["no JSON", (response: ServerResponse) => response.setHeader("content-type", "application/json").end("{")],
  ["a failure", (response: ServerResponse) => response.writeHead(503).end("down")],
  ["an end without an answer", (response: ServerResponse) => response.destroy()],
  [
    "a redirection",
    (response: ServerResponse) => response.writeHead(307, { location: "http://example.com/" }).end(),
  ],
])("%s causes a readable error", async (_, respond) => {
  const server = await overHttp({ call: ({ response }) => void respond(response) });
  const servers = await opened({ far: { url: server.url, idle_timeout: 0.5 } });
  const { error, outcome } = await call(servers, "mcp__far__call");
  expect(error).toMatch(/^MCP server `far` .{10,200}\.$/);
  expect(error).not.toContain("127.0.0.1");
  expect(outcome.status).toBe("success");
});

test("headers reach the server, but no log, event or result", async () => {
  const secret = "s3cret-of-the-operator";
  const server = await overHttp({
    echo: ({ id, request, response }) =>
      answer(response, id, text(`you sent ${request.headers.authorization}`)),
    fail: ({ response }) => response.writeHead(500).end(`wrong key ${secret}`),
  });
  const servers = await opened({ far: { url: server.url, headers: { Authorization: `Bearer ${secret}` } } });
  const results = [await call(servers, "mcp__far__echo"), await call(servers, "mcp__far__fail")];
  expect(server.requests.every(({ headers }) => headers.authorization === `Bearer ${secret}`)).toBe(true);
  expect(results[0]?.text).toContain("you sent ***");
  expect(JSON.stringify([results, servers.log])).not.toContain(secret);
});

test("a server that refuses us or is missing offers nothing, and the log gives the reason", async () => {
  const server = await overHttp({}, (_, response) => {
    response.writeHead(401).end();
    return true;
  });
  const servers = await opened({
    far: { url: server.url },
    gone: { url: `http://127.0.0.1:${await freePort()}/` },
  });
  expect(namesOf(servers)).toEqual([]);
  expect(servers.log.join("\n")).toContain("`far` rejects the configured credentials (HTTP 401)");
  expect(servers.log.join("\n")).toContain("`gone` cannot be reached (ECONNREFUSED)");
});

test("a server that starts later is found", async () => {
  let isUp = false;
  const server = await overHttp({ echo: () => {} }, (_, response) => {
    if (!isUp) response.writeHead(503).end();
    return !isUp;
  });
  const servers = await opened({ far: { url: server.url } });
  expect(namesOf(servers)).toEqual([]);
  isUp = true;
  await eventually(() => expect(namesOf(servers)).toEqual(["mcp__far__echo"]));
});
