import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { startServer } from "../support/server.ts";

const put = (url: string, body: Uint8Array<ArrayBuffer> | string, headers: Record<string, string> = {}) =>
  fetch(url, { method: "PUT", body, headers });

describe("the files of a user's backend", () => {
  test("are returned byte for byte as they were written, for any content type", async () => {
    const { url } = await startServer();
    const bytes = new Uint8Array(randomBytes(300_000));
    const written = await put(`${url}/backend/files/data/all.bin`, bytes, {
      "content-type": "application/json",
    });
    expect(written.status).toBe(201);
    expect(await written.json()).toEqual({ path: "/workspace/data/all.bin", bytes_written: 300_000 });
    const read = await fetch(`${url}/backend/files/data/all.bin`);
    expect(read.headers.get("content-length")).toBe("300000");
    expect(read.headers.get("content-disposition")).toContain("attachment");
    expect(read.headers.get("x-content-type-options")).toBe("nosniff");
    expect(Buffer.compare(new Uint8Array(await read.arrayBuffer()), bytes)).toBe(0);
  });

  test.each([
    ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
    ["bytes=7-", 206, "789", "bytes 7-9/10"],
    ["bytes=-2", 206, "89", "bytes 8-9/10"],
    ["bytes=5-99", 206, "56789", "bytes 5-9/10"],
    ["bytes=0-1,3-4", 200, "0123456789", null],
    ["lines=1-2", 200, "0123456789", null],
  ])("can be read in part: %s", async (range, status, text, contentRange) => {
    const { url } = await startServer();
    await put(`${url}/backend/files/digits`, "0123456789");
    const response = await fetch(`${url}/backend/files/digits`, { headers: { range } });
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(text);
    expect(response.headers.get("content-range")).toBe(contentRange);
  });

  test("have a version, and a write that expects another one, or none, is refused", async () => {
    const { url } = await startServer();
    const file = `${url}/backend/files/plan.md`;
    const write = async (body: string, headers: Record<string, string> = {}) => {
      const answer = await put(file, body, headers);
      const { code } = (await answer.json()) as { code?: string };
      return [answer.status, code];
    };
    const version = async (headers: Record<string, string> = {}) =>
      (await fetch(file, { headers })).headers.get("etag") ?? expect.fail();
    const refused = [412, "precondition_failed"];

    expect(await write("x", { "if-match": '"none"' })).toEqual(refused);
    expect(await write("x", { "if-match": "*" })).toEqual(refused);
    expect(await write("one", { "if-none-match": "*" })).toEqual([201, undefined]);
    expect(await write("x", { "if-none-match": "*" })).toEqual(refused);
    const one = await version();
    expect(await version({ range: "bytes=0-0" })).toBe(one);
    // As long as the one before it, and maybe within the same second.
    await write("two");
    expect(await write("x", { "if-match": one })).toEqual(refused);
    const both = await Promise.all(
      ["six", "ten"].map(async (body) => write(body, { "if-match": `"none", ${await version()}` })),
    );
    expect(both.toSorted()).toEqual([[201, undefined], refused]);
    expect(["six", "ten"]).toContain(await (await fetch(file)).text());
    expect(await write("x", { "if-match": "*" })).toEqual([201, undefined]);
    for (const headers of [{ "if-match": "one" }, { "if-none-match": one }])
      expect(await write("y", headers)).toEqual([400, "invalid_request"]);
    expect(await (await fetch(file)).text()).toBe("x");
  });

  test("larger than 1 MiB have a version too", async () => {
    const { url } = await startServer();
    const file = `${url}/backend/files/large.bin`;
    const bytes = new Uint8Array(randomBytes(1_200_000));
    await put(file, bytes);
    const version =
      (await fetch(file, { headers: { range: "bytes=0-0" } })).headers.get("etag") ?? expect.fail();
    expect((await put(file, bytes.subarray(1), { "if-match": version })).status).toBe(201);
    expect((await put(file, bytes, { "if-match": version })).status).toBe(412);
    const read = new Uint8Array(await (await fetch(file)).arrayBuffer());
    expect(Buffer.compare(read, bytes.subarray(1))).toBe(0);
  });

  test("refuse a range beyond their end with 416", async () => {
    const { url } = await startServer();
    await put(`${url}/backend/files/digits`, "0123456789");
    const response = await fetch(`${url}/backend/files/digits`, { headers: { range: "bytes=10-" } });
    expect(response.status).toBe(416);
  });

  test("can be listed by folder and removed", async () => {
    const { url } = await startServer();
    await put(`${url}/backend/files/a/one.txt`, "1");
    await put(`${url}/backend/files/a/two.txt`, "22");
    const { items } = (await (await fetch(`${url}/backend/files/a`)).json()) as {
      items: { path: string; size: number }[];
    };
    expect(items.map(({ path, size }) => [path, size])).toEqual([
      ["/workspace/a/one.txt", 1],
      ["/workspace/a/two.txt", 2],
    ]);
    expect((await fetch(`${url}/backend/files/a`, { method: "DELETE" })).status).toBe(204);
    expect((await fetch(`${url}/backend/files/a/one.txt`)).status).toBe(404);
  });

  test("can be read by the path in the list, and so can the workspace without one", async () => {
    const { url } = await startServer();
    await put(`${url}/backend/files/workspace/a/b.txt`, "here");
    type Listing = { items: { name: string; path: string }[] };
    const listed = async (path: string) =>
      (await (await fetch(`${url}/backend/files${path}`)).json()) as Listing;
    const top = await listed("");
    expect(top.items).toMatchObject([{ name: "a", path: "/workspace/a" }]);
    expect([await listed("/"), await listed("/workspace")]).toEqual([top, top]);
    const { items } = await listed(top.items[0]?.path ?? "");
    expect(await (await fetch(`${url}/backend/files${items[0]?.path}`)).text()).toBe("here");
    expect(await (await fetch(`${url}/backend/files/a/b.txt`)).text()).toBe("here");
    await put(`${url}/backend/files/workspace/workspace/c`, "nested");
    expect((await listed("/workspace/workspace")).items).toMatchObject([{ path: "/workspace/workspace/c" }]);
  });

  test("cannot be uploaded as a form: 415, and nothing is written", async () => {
    const { url } = await startServer();
    const body = new FormData();
    body.set("file", new Blob(["content"]), "a.txt");
    const answer = await fetch(`${url}/backend/files/a.txt`, { method: "PUT", body });
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject({
      code: "unsupported_media_type",
      detail: expect.stringMatching(/the file's bytes as the body/),
    });
    expect((await fetch(`${url}/backend/files/a.txt`)).status).toBe(404);
  });

  test.each([
    ["..%2f..%2fetc%2fpasswd", 403, "backend_refused"],
    ["%2e%2e/%2e%2e/etc/passwd", 404, "not_found"],
    ["a/..%2f..%2f..%2f..%2fetc/passwd", 403, "backend_refused"],
    ["a%00b", 400, "invalid_request"],
  ])("cannot be reached outside the workspace: %s", async (path, status, code) => {
    const { url } = await startServer();
    const response = await fetch(`${url}/backend/files/${path}`);
    const { code: told } = (await response.json()) as { code: string };
    expect([response.status, told]).toEqual([status, code]);
  });

  test("that are too large are refused, and nothing of them is kept", async () => {
    const { url } = await startServer({ config: { limits: { upload_bytes: 1000 } } });
    const response = await put(`${url}/backend/files/big`, "x".repeat(5000));
    expect(response.status).toBe(413);
    expect((await fetch(`${url}/backend/files/big`)).status).toBe(404);
  });

  test("do not exist for an agent without a backend", async () => {
    const { url } = await startServer({ agents: "agents: { talker: { model: 'scripted:test' } }" });
    expect((await fetch(`${url}/backend`)).status).toBe(404);
    expect((await fetch(`${url}/backend/files/x`)).status).toBe(404);
  });
});

test("a backend can be started, stopped and restarted, and its files are kept", async () => {
  const { url } = await startServer();
  const status = async (init?: RequestInit, action = "") =>
    ((await (await fetch(`${url}/backend${action}`, init)).json()) as { status: string }).status;
  expect(await status()).toBe("stopped");
  expect(await status({ method: "POST" }, "/start")).toBe("running");
  await put(`${url}/backend/files/kept`, "yes");
  expect(await status({ method: "POST" }, "/stop")).toBe("stopped");
  expect(await status({ method: "POST" }, "/restart")).toBe("running");
  expect(await (await fetch(`${url}/backend/files/kept`)).text()).toBe("yes");
});
