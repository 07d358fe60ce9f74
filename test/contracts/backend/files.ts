// What every backend promises of its files.

import { createHash, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { execute, names, readAll, refuses } from "../../support/backend.ts";
import { editing } from "./editing.ts";
import { folders } from "./folders.ts";
import type { It } from "./it.ts";
import { paths } from "./paths.ts";

const { signal } = new AbortController();

export function files(it: It): void {
  describe("files", () => {
    reading(it);
    writing(it);
    paths(it);
    folders(it);
    editing(it);
  });
}

function reading(it: It): void {
  test.each([0, 1, 4095, 65_536, 98_305, 1_048_577])(
    "returns %i bytes as they were written",
    async (size) => {
      const bytes = randomBytes(size);
      expect(await it().write("sizes/file", bytes, signal)).toBe(size);
      expect(await sha(readAll(it(), "sizes/file"))).toBe(await sha(bytes));
      expect((await it().stat("sizes/file", signal)).size).toBe(size);
    },
  );

  test("keeps every possible byte", async () => {
    const bytes = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
    await it().write("bytes", bytes, signal);
    expect([...(await readAll(it(), "bytes"))]).toEqual([...bytes]);
  });

  test("reads the requested range, and no further than the end", async () => {
    await it().write("range", Buffer.from("0123456789"), signal);
    const part = async (offset?: number, length?: number) =>
      String(
        await readAll(it(), "range", {
          ...(offset === undefined ? {} : { offset }),
          ...(length === undefined ? {} : { length }),
        }),
      );
    expect(await part(3, 4)).toBe("3456");
    expect(await part(7)).toBe("789");
    expect(await part(8, 100)).toBe("89");
    expect(await part(10, 5)).toBe("");
    expect(await part(99)).toBe("");
    expect(await part(0, 0)).toBe("");
  });

  test("reads a large file piece by piece, and stops when the reader does", async () => {
    await it().write("large", Buffer.alloc(3_000_000, 97), signal);
    for await (const chunk of it().read("large", {}, signal)) {
      expect(chunk.length).toBeLessThan(1_000_000);
      break;
    }
    await it().remove("large", signal);
  });

  test("ends a read if it is cancelled", async () => {
    await it().write("large", Buffer.alloc(3_000_000, 97), signal);
    const abort = new AbortController();
    const read = async () => {
      for await (const _ of it().read("large", {}, abort.signal)) abort.abort(new Error("enough"));
    };
    await expect(read()).rejects.toThrow("enough");
  });

  test("reports missing files, and paths that are not files", async () => {
    await it().write("kinds/file", Buffer.from("x"), signal);
    await execute(it(), "mkfifo kinds/pipe");
    await refuses(() => readAll(it(), "nowhere"), "not_found", "`nowhere`");
    await refuses(() => it().stat("nowhere/at/all", signal), "not_found", "`nowhere/at/all`");
    await refuses(() => readAll(it(), "kinds"), "invalid_request", "folder");
    await refuses(() => readAll(it(), "kinds/pipe"), "invalid_request", "pipe");
    await refuses(() => readAll(it(), "kinds/file/below"), "invalid_request", "`kinds/file/below`");
    await refuses(() => it().list("kinds/file", signal), "invalid_request", "not a folder");
    await refuses(() => it().list("nowhere", signal), "not_found", "`nowhere`");
  });
}

function writing(it: It): void {
  test("replaces a file as a whole, and keeps it executable", async () => {
    await it().write("tool", Buffer.from("#!/bin/sh\necho first\n"), signal);
    await execute(it(), "chmod 755 tool");
    await it().write("tool", Buffer.from("#!/bin/sh\necho second\n"), signal);
    expect(await execute(it(), "./tool")).toMatchObject({ output: "second\n", exitCode: 0 });
  });

  test("accepts a file in any form", async () => {
    const chunks = Array.from({ length: 50 }, () => randomBytes(7001));
    const bytes = await it().write("streamed", from(chunks), signal);
    expect(bytes).toBe(50 * 7001);
    expect(await sha(readAll(it(), "streamed"))).toBe(await sha(Buffer.concat(chunks)));
  });

  test("a write that fails halfway changes nothing", async () => {
    await it().write("half/file", Buffer.from("before"), signal);
    async function* broken() {
      yield Buffer.from("after");
      throw new Error("the line went dead");
    }
    await expect(it().write("half/file", broken(), signal)).rejects.toThrow();
    await expect(it().write("half/new", broken(), signal)).rejects.toThrow();
    expect(String(await readAll(it(), "half/file"))).toBe("before");
    expect(await names(it(), "half")).toEqual(["file"]);
  });

  test("a write is cancelled even while its source is silent", async () => {
    const abort = new AbortController();
    async function* silent() {
      yield Buffer.from("some");
      abort.abort(new Error("cancelled by the test"));
      await new Promise(() => {});
    }
    await expect(it().write("silent/file", silent(), abort.signal)).rejects.toThrow("cancelled by the test");
    expect(await names(it(), "silent")).toEqual([]);
  });

  test("one of many simultaneous writers wins, and no reader sees a mixture", async () => {
    const bodies = Array.from({ length: 20 }, (_, index) => Buffer.alloc(200_000 + index, 65 + index));
    await it().write("race", Buffer.alloc(200_000, 64), signal);
    let writing = true;
    const writes = Promise.all(bodies.map((body) => it().write("race", body, signal))).finally(() => {
      writing = false;
    });
    do {
      const seen = await readAll(it(), "race");
      expect(seen.length).toBeGreaterThanOrEqual(200_000);
      expect(seen.every((byte) => byte === seen[0])).toBe(true);
      expect((await it().stat("race", signal)).path).toBe(`${it().workdir}/race`);
    } while (writing);
    await writes;
    const last = await readAll(it(), "race");
    expect(bodies.some((body) => body.equals(last))).toBe(true);
  });

  test("does not write to a folder, a pipe or a path below a file", async () => {
    await it().write("targets/folder/file", Buffer.from("x"), signal);
    await execute(it(), "mkfifo targets/pipe");
    const write = (path: string) => it().write(path, Buffer.from("y"), signal);
    await refuses(() => write("targets/folder"), "invalid_request", "folder");
    await refuses(() => write("."), "invalid_request", "folder");
    await refuses(() => write("targets/pipe"), "invalid_request", "pipe");
    await refuses(() => write("targets/folder/file/below"), "invalid_request", "`targets/folder/file/below`");
  });
}

async function* from(chunks: readonly Uint8Array[]) {
  yield* chunks;
}

const sha = async (bytes: Uint8Array | Promise<Uint8Array>) =>
  createHash("sha256")
    .update(await bytes)
    .digest("hex");
