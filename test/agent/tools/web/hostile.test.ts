// Documents that want to take a server's time or memory.

import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { httpServer, served } from "../../../support/hostile.ts";
import { allowing, called, pdfOf, readPage, toolsWith } from "./web.ts";

const MIB = 1024 * 1024;

const serving = (type: string, body: string | Buffer, headers = {}) =>
  httpServer(served(type, body, 200, headers));

test("an endless page is abandoned", async () => {
  const server = await httpServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(65_536))) {}
    };
    response.on("drain", more);
    more();
  });
  expect((await readPage(server)).error).toBe(
    "The page could not be read: the response is larger than 10240 KiB.",
  );
  await expect.poll(() => server.open()).toBe(0);
});

test("the decompressed size of a small response is limited too", async () => {
  const bomb = gzipSync(Buffer.alloc(64 * MIB, "x"));
  const server = await serving("text/html", bomb, { "content-encoding": "gzip" });
  expect((await readPage(server)).error).toBe(
    "The page could not be read: the response is larger than 10240 KiB.",
  );
});

test("a server that never ends its response is abandoned", async () => {
  const server = await httpServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    const drip = setInterval(() => response.write("x"), 20);
    response.on("close", () => clearInterval(drip));
  });
  const tools = toolsWith(allowing(server), { call: 300 });
  const { error } = await called(tools, "web_fetch", { url: server.url });
  expect(error).toBe("The page could not be read within 0.3 s.");
  await expect.poll(() => server.open()).toBe(0);
});

test.each([
  ["ten million bytes of opening tags", "<div>".repeat(2_000_000)],
  ["twenty thousand tags within each other", "<div>".repeat(20_000)],
  ["tags that close others", "<div>".repeat(500_000) + "</b>".repeat(500_000)],
  ["tags that imply others", "<p><li>".repeat(100_000)],
  ["very many paragraphs", "<p>a</p>".repeat(500_000)],
])("a page of %s becomes plain text", async (_, markup) => {
  const server = await serving("text/html", `<title>T</title>${markup}last words`);
  const { text, error } = await readPage(server, "/", { max_chars: 60_000, offset: 0 });
  expect(error).toBeUndefined();
  expect(text).toContain('title="T"');
  if (!markup.includes("<p>a")) expect(text).toContain("last words");
});

test.each([
  ["attributes", `<div ${Array.from({ length: 400_000 }, (_, n) => `a${n}=b`).join(" ")}>x</div>`],
  ["brackets", "<".repeat(5 * MIB)],
])("a page of %s that takes too long ends its thread, and the next page is read", async (_, markup) => {
  const server = await httpServer([served("text/html", markup), served("text/plain", "good words")]);
  const tools = toolsWith(allowing(server), { document: 3000 });
  const first = await called(tools, "web_fetch", { url: server.url });
  if (first.error !== undefined)
    expect(first.error).toMatch(/^The document (needs too much memory|takes longer than 3 s) to read\.$/);
  expect((await called(tools, "web_fetch", { url: server.url })).text).toContain("good words");
});

test("a document that takes too long is abandoned, while others are read", async () => {
  const slow = `${"<ul><li>".repeat(195)}${"<p>x</p>".repeat(20_000)}`;
  const server = await httpServer((heard, response) =>
    (heard.path === "/slow" ? served("text/html", slow) : served("text/plain", "good words"))(
      heard,
      response,
    ),
  );
  const tools = toolsWith(allowing(server), { document: 2000 });
  const reading = (path: string) => called(tools, "web_fetch", { url: server.url + path });
  const late = reading("/slow");
  expect((await reading("/")).text).toContain("good words");
  expect((await late).error).toBe("The document takes longer than 2 s to read.");
});

test("a PDF with very many pages is returned in part", async () => {
  const pages = Array.from({ length: 600 }, (_, n) => `words of ${n + 1}`);
  const server = await serving("application/pdf", pdfOf(...pages));
  const { text } = await readPage(server, "/", { max_chars: 60_000 });
  expect(text).toContain("[page 1]\n\nwords of 1");
  expect(text).not.toContain("[page 501]");
  expect(text).toContain("The rest of the document is too long to read.");
});

test.each([
  ["%PDF-1.4\nnothing", "The document is not a valid PDF."],
  [pdfOf(""), "The document has no text: its pages are probably images."],
])("a PDF without text explains why", async (body, reason) => {
  expect((await readPage(await serving("application/pdf", body))).error).toBe(reason);
});

test("a robots.txt with hostile rules does not slow down others", async () => {
  const rules = `User-agent: *\nDisallow: /${"*a".repeat(200_000)}b`;
  const server = await httpServer((heard, response) =>
    served("text/plain", heard.path === "/robots.txt" ? rules : "words")(heard, response),
  );
  const tools = toolsWith({ ...allowing(server), robots: "respect" }, { document: 1000 });
  const { text, error } = await called(tools, "web_fetch", { url: `${server.url}/${"a".repeat(3000)}` });
  expect(error ?? text).toMatch(/words|takes longer than 1 s/);
});
