import { describe, expect, test } from "vitest";
import { dataOf } from "../../../support/drain.ts";
import { httpServer } from "../../../support/hostile.ts";
import { call } from "./caller.ts";

const outputs = (played: Awaited<ReturnType<typeof call>>) =>
  dataOf(played.events, "on_tool_progress").map(({ output }) => output);

describe("progress", () => {
  const lines = (type: string, parts: readonly string[]) =>
    httpServer(async (_, response) => {
      response.writeHead(200, { "content-type": type });
      for (const part of parts) await new Promise((resolve) => response.write(part, resolve));
      response.end();
    });

  test.each([
    [
      "lines",
      "application/x-ndjson; charset=utf-8",
      ['{"progress": "a third"}\n{"pro', 'gress": {"done": 2}}\r\n\n', '{"note": 1}\n{"result": "all"}'],
    ],
    [
      "server-sent events",
      "text/event-stream",
      [
        ': hello\n\ndata: {"progress": "a third"}\n\n',
        'event: x\ndata: {"progress":\ndata: {"done": 2}}\n\n',
        'data: {"result": "all"}\n\n',
      ],
    ],
  ])("arrives as %s before the result", async (_, type, parts) => {
    const played = await call((await lines(type, parts)).url);
    expect(outputs(played)).toEqual(["a third", '{"done":2}']);
    expect(played.answer).toMatchObject({ content: "all" });
  });

  test("is shown during the call", async () => {
    const shown = Promise.withResolvers<void>();
    const server = await httpServer(async (_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write('{"progress": "half"}\n');
      await shown.promise;
      response.end('{"result": "all"}\n');
    });
    const onEvent = ({ event }: { event: string }) => event === "on_tool_progress" && shown.resolve();
    expect((await call(server.url, { onEvent })).answer).toMatchObject({ content: "all" });
  });

  test("after the result is not awaited", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write('{"result": "all"}\n{"progress": "more"}\n');
    });
    const played = await call(server.url);
    expect(played.answer).toMatchObject({ content: "all" });
    expect(outputs(played)).toEqual([]);
    await expect.poll(() => server.open()).toBe(0);
  });

  test("can end with a failure", async () => {
    const server = await lines("application/x-ndjson", ['{"progress": "half"}\n', '{"error": "No."}\n']);
    expect((await call(server.url)).answer).toMatchObject({ error: "No." });
  });

  test.each([
    ["ends without a result", ['{"progress": "half"}\n'], "the response ended without a `result`"],
    ["is not JSON", ["hello\n"], "the response is not valid JSON"],
    [
      "has a line without end",
      Array(30).fill("x".repeat(65_536)),
      "a part of the response is longer than 1024 KiB",
    ],
  ])("that %s is a failed call", async (_, parts, sentence) => {
    for (const type of ["application/x-ndjson", "text/event-stream"]) {
      const framed = type === "text/event-stream" ? parts.map(asEvent) : parts;
      const { answer } = await call((await lines(type, framed)).url);
      expect(answer?.error).toContain(sentence);
    }
  });

  test("without end is cut off, and only its beginning is shown", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      const more = () => {
        while (!response.destroyed && response.write('{"progress": "x"}\n'.repeat(3000))) {}
      };
      response.on("drain", more);
      more();
    });
    const played = await call(server.url);
    expect(outputs(played)).toHaveLength(1000);
    expect(played.answer?.error).toContain("the response is larger than 4096 KiB");
    await expect.poll(() => server.open()).toBe(0);
  });
});

const asEvent = (part: string, index: number) =>
  part.endsWith("\n") ? `data: ${part}\n` : index === 0 ? `data: ${part}` : part;
