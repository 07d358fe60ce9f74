// Against servers that others have written and published.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../support/free-port.ts";
import { call, namesOf, type Opened, open, opened, published } from "./opened.ts";

const everything = published("server-everything/dist/index.js", "stdio");

test("a server's tools are offered under its name with their descriptions", async () => {
  const servers = await opened({ everything: { ...everything, trust_annotations: true } });
  expect(namesOf(servers)).toEqual(
    expect.arrayContaining(["mcp__everything__echo", "mcp__everything__get-sum"]),
  );
  const sum = servers.tools().find(({ name }) => name === "mcp__everything__get-sum");
  expect(sum).toMatchObject({
    description: expect.stringContaining("sum"),
    parameters: { type: "object", required: ["a", "b"] },
    annotations: { readOnly: true, destructive: false, idempotent: true },
  });
});

describe.each(["stdio", "http"])("over %s", (way) => {
  let servers: Opened;
  const ask = (tool: string, args?: Record<string, unknown>) =>
    call(servers, `mcp__everything__${tool}`, args);

  beforeAll(async () => {
    const port = await freePort();
    const http = way === "http" ? await startHttp(port) : undefined;
    servers = await open({ everything: http ? { url: urlOf(port) } : everything });
    return async () => {
      await servers.end();
      if (http) await stop(http);
    };
  });

  test("a call returns its answer", async () => {
    expect(await ask("echo", { message: "hello" })).toMatchObject({
      text: expect.stringContaining("hello"),
      error: undefined,
    });
    expect((await ask("get-sum", { a: 2, b: 3 })).text).toContain("5");
  });

  test("the model learns that arguments were invalid", async () => {
    expect((await ask("get-sum", { a: "two" })).error).toMatch(/a|number|arguments/i);
  });

  test("images, links, resources and structured content arrive", async () => {
    expect((await ask("get-tiny-image")).content).toContainEqual(
      expect.objectContaining({ type: "image", media_type: "image/png" }),
    );
    expect((await ask("get-resource-links", { count: 2 })).text).toMatch(/\[.*demo:\/\/.*\]/);
    const reference = await ask("get-resource-reference", { resourceType: "Text", resourceId: 1 });
    expect(reference.text).toContain('<resource uri="demo://');
    const blob = await ask("get-resource-reference", { resourceType: "Blob", resourceId: 1 });
    expect(blob.text).toContain("demo://");
    const weather = await ask("get-structured-content", { location: "Chicago" });
    expect(weather.text.match(/temperature/g)).toHaveLength(1);
  });

  test("a long operation reports its progress", async () => {
    const { shown, text } = await ask("trigger-long-running-operation", { duration: 0.4, steps: 4 });
    expect(shown.join("")).toMatch(/1\/4\n(.*\n)*4\/4\n/);
    expect(text).toContain("completed");
  });
});

test("a restarted HTTP server is called in a new session", async () => {
  const port = await freePort();
  const first = await startHttp(port);
  onTestFinished(() => stop(first));
  const servers = await opened({ everything: { url: urlOf(port) } });
  const ask = () => call(servers, "mcp__everything__echo", { message: "hello" });
  expect((await ask()).error).toBeUndefined();
  await stop(first);
  const second = await startHttp(port);
  onTestFinished(() => stop(second));
  expect(await ask()).toMatchObject({ error: undefined, text: expect.stringContaining("hello") });
});

test("the file server reads files, but none outside its folder", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "mcp-")));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "note.txt"), "buy milk");
  const servers = await opened({ files: published("server-filesystem/dist/index.js", folder) });
  const read = (path: string) => call(servers, "mcp__files__read_text_file", { path });
  expect((await read(join(folder, "note.txt"))).text).toContain("buy milk");
  expect((await read("/etc/passwd")).error).toContain("Access denied");
});

const urlOf = (port: number) => `http://127.0.0.1:${port}/mcp`;

/** The caller stops it. */
async function startHttp(port: number): Promise<ChildProcess> {
  const { command, args } = published("server-everything/dist/index.js", "streamableHttp") as {
    command: string;
    args: string[];
  };
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", (text) => String(text).includes("listening") && resolve());
    child.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
  });
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}
