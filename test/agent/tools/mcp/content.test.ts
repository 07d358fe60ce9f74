// What a server answers, as it lies in the thread.

import { afterAll, beforeAll, expect, test } from "vitest";
import { Message } from "../../../../src/agent/core/message.ts";
import { call, hostile, type Opened, open } from "./opened.ts";

let servers: Opened;
beforeAll(async () => {
  servers = await open({ a: hostile() });
});
afterAll(() => servers.end());

const answered = (result: object) => call(servers, "mcp__a__kinds", { ...result });
const base64 = (bytes: string) => Buffer.from(bytes, "latin1").toString("base64");
const PNG = base64("\x89PNG\r\n\x1a\n and so on");

/** An image of a kind, as its first bytes tell it. */
const image = (media_type: string, start: string): [block: object, content: unknown] => {
  const data = base64(`${start} \xff`);
  return [{ type: "image", data, mimeType: "image/bmp" }, [{ type: "image", media_type, data }]];
};

const cases: Readonly<Record<string, [block: object, content: unknown]>> = {
  "a JPEG is one": image("image/jpeg", "\xff\xd8\xff\xe0"),
  "a GIF is one": image("image/gif", "GIF89a"),
  "an old GIF is one": image("image/gif", "GIF87a"),
  "a WebP image is one": image("image/webp", "RIFF\x01\x02\x03\nWEBP"),
  "text is text": [{ type: "text", text: "hello" }, "hello"],
  "an image is what its bytes say": [
    { type: "image", data: PNG, mimeType: "image/jpeg" },
    [{ type: "image", media_type: "image/png", data: PNG }],
  ],
  "an image that is none is text": [
    { type: "image", data: base64("<svg/>"), mimeType: "image/png" },
    "<svg/>",
  ],
  "sound is a file": [
    { type: "audio", data: base64("RIFF\x01\xff\xfe\x80WAVE"), mimeType: "audio/wav" },
    [{ type: "file", media_type: "audio/wav", name: "audio", data: base64("RIFF\x01\xff\xfe\x80WAVE") }],
  ],
  "a link becomes text": [
    {
      type: "resource_link",
      uri: "file:///a.txt",
      name: "a",
      mimeType: "text/plain",
      description: "the first",
    },
    "[a: file:///a.txt (text/plain, the first)]",
  ],
  "a text resource comes with its address": [
    { type: "resource", resource: { uri: "file:///a.txt", text: "content" } },
    '<resource uri="file:///a.txt">\ncontent\n</resource>',
  ],
  "a resource of bytes is a file": [
    {
      type: "resource",
      resource: { uri: "file:///x/a.pdf", mimeType: "text/html", blob: base64("%PDF-1.7 \xff") },
    },
    [
      { type: "text", text: "[file:///x/a.pdf]" },
      { type: "file", media_type: "application/pdf", name: "a.pdf", data: base64("%PDF-1.7 \xff") },
    ],
  ],
  "a false PDF is none": [
    { type: "resource", resource: { uri: "a:b", mimeType: "application/pdf", blob: base64("\xff\xfe\x00") } },
    [
      { type: "text", text: "[a:b]" },
      { type: "file", media_type: "application/octet-stream", name: "a:b", data: base64("\xff\xfe\x00") },
    ],
  ],
  "half a character becomes a whole one": [{ type: "text", text: "a\ud800b" }, "a\ufffdb"],
};

test.each(Object.entries(cases))("%s", async (_, [block, content]) => {
  expect(await answered({ content: [block] })).toMatchObject({ content, error: undefined });
});

test("several parts keep their order, and empty ones are dropped", async () => {
  const image = { type: "image", data: PNG, mimeType: "image/png" };
  const { content } = await answered({
    content: [{ type: "text", text: "" }, image, { type: "text", text: "b" }],
  });
  expect(content).toMatchObject([{ type: "image" }, { type: "text", text: "b" }]);
});

test("structured content is shown once", async () => {
  const structuredContent = { degrees: 21 };
  expect((await answered({ content: [], structuredContent })).content).toBe('{"degrees":21}');
  const said = [{ type: "text", text: '{ "degrees": 21 }' }];
  expect((await answered({ content: said, structuredContent })).content).toBe('{ "degrees": 21 }');
  const other = [{ type: "text", text: "It is warm." }];
  expect((await answered({ content: other, structuredContent })).content).toBe('It is warm.\n{"degrees":21}');
});

test("excess data is left out, and the thread remains readable", async () => {
  const data = "A".repeat(5_000_004);
  const files = Array.from({ length: 4 }, () => ({
    ...{ type: "audio", data: `/w${"A".repeat(3_999_998)}`, mimeType: "audio/wav" },
  }));
  const lines = Array.from({ length: 150 }, (_, at) => ({ type: "text", text: `line ${at}` }));
  const big = await answered({ content: [{ type: "image", data, mimeType: "image/png" }] });
  expect(big.content).toBe("[image: left out, 3750003 bytes are too many]");
  const many = await answered({ content: files });
  expect(many.text).toContain("[audio/wav: left out, because the result is too large]");
  expect((await answered({ content: lines })).text).toContain("line 99\n[50 more parts left out]");
  const message = { id: "m", created_at: new Date().toISOString(), role: "user", content: many.content };
  expect(Message.safeParse(message).success).toBe(true);
});

test("a failure that is not text keeps its contents", async () => {
  const image = { type: "image", data: PNG, mimeType: "image/png" };
  expect(await answered({ content: [image], isError: true })).toMatchObject({
    error: "The tool reports an error.",
    content: [{ type: "image" }],
  });
  expect((await answered({ content: [], isError: true })).error).toBe(
    "The tool failed without giving a reason.",
  );
});
