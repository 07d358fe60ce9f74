// Which request it was: the same id in the answer, in the log and in the runs that it started.

import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Model } from "../../../src/agent/core/model.ts";
import { type ServerOptions, startServer } from "../../support/server.ts";
import { post } from "../../support/sse.ts";

const ID = "x-request-id";

async function logged(options: ServerOptions = {}) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "info" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const { url } = await startServer({ ...options, logger });
  return { url, lines, line: (msg: string) => lines.find((each) => each.msg === msg) };
}

test("every response contains its request id, and a refusal does so in its body too", async () => {
  const { url } = await startServer();
  const paths = ["/health", "/threads", "/nowhere", "/threads/%ff", "/docs", "/openapi.yaml"];
  const ids = await Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`${url}${path}`);
      const id = answer.headers.get(ID);
      const body = await answer.text();
      if (answer.status >= 400) expect(JSON.parse(body)).toMatchObject({ request_id: id });
      return id;
    }),
  );
  expect(new Set(ids).size).toBe(paths.length);
  for (const id of ids) expect(id).toMatch(/^req_\w{22}$/);
});

test("an id from the client is kept if it is valid", async () => {
  const { url } = await startServer();
  const answered = async (id: string) =>
    (await fetch(`${url}/health`, { headers: { [ID]: id } })).headers.get(ID);
  expect(await answered("3f0c.A-7_x")).toBe("3f0c.A-7_x");
  for (const id of ["", "two words", "x".repeat(65), 'a"}', "a,b"])
    expect(await answered(id)).toMatch(/^req_/);
});

test("an id that is sent twice is ignored", async () => {
  const { url } = await startServer();
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: a\r\nx-request-id: b\r\n");
  socket.end("connection: close\r\n\r\n");
  expect(await text(socket)).toMatch(/x-request-id: req_/);
});

test("a stream contains its request id, and so does its only log line, for the end of the run", async () => {
  const { url, line, lines } = await logged();
  const viewer = await post(`${url}/threads/t1/runs`, { input: "Hello" }, { [ID]: "from-the-page" });
  expect(viewer.headers.get(ID)).toBe("from-the-page");
  await viewer.ended();
  await expect.poll(() => line("run ended")).toMatchObject({ request_id: "from-the-page", thread_id: "t1" });
  await (await post(`${url}/threads/t2/runs`, { input: "Hello" }, { [ID]: "later" })).ended();
  await expect.poll(() => lines.some(({ request_id }) => request_id === "later")).toBe(true);
  expect(lines.filter(({ request_id }) => request_id === "from-the-page")).toHaveLength(1);
});

test("the log contains the request id of a failed run and of a failed response", async () => {
  const broken: Model = {
    name: "own:m",
    stream() {
      throw new TypeError("cannot read the weights");
    },
  };
  const { url, line } = await logged({ model: broken });
  await (await post(`${url}/threads/t1/runs`, { input: "Hello" }, { [ID]: "r-1" })).ended();
  await expect.poll(() => line("run failed")).toMatchObject({ request_id: "r-1" });
});
