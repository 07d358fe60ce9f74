// What generators and readers of the contract find in it.

import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { test as inBrowser, openTab, type Tab } from "../../support/chromium.ts";
import { httpServer } from "../../support/hostile.ts";
import { installedPackages } from "../../support/packages.ts";
import { startServer, temporaryFolder } from "../../support/server.ts";

const Operation = z.object({
  operationId: z.string().regex(/^[a-z][A-Za-z0-9]+$/),
  summary: z.string(),
  responses: z.record(z.string(), z.object({ description: z.string() })),
});
const Contract = z.object({
  servers: z.array(z.object({ url: z.string() })),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
});
const contract = async () => Contract.parse(parse(await readFile("openapi.yaml", "utf8")));

describe("the contract", () => {
  test("names each operation once, and says in words what each status is", async () => {
    const operations = Object.values((await contract()).paths).flatMap((each) => Object.values(each));
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(["createThreadRun", "listThreads", "cancelThreadRun"]));
    const words = operations.flatMap(({ responses }) =>
      Object.values(responses).map((each) => each.description),
    );
    expect(words).not.toContain("Default Response");
  });

  test("holds for the server that it is read from, at any address", async () => {
    expect((await contract()).servers).toEqual([{ url: "/" }]);
    const { url } = await startServer({});
    const yaml = parse(await (await fetch(`${url}/openapi.yaml`)).text());
    expect(await (await fetch(`${url}/openapi.json`)).json()).toEqual(yaml);
  });
});

/** The generator needs an older TypeScript than Skein. */
const GENERATOR = ["openapi-typescript@7.13.0", "typescript@5.9.3"];

const CALLER = `
import type { components, operations } from "./skein";
type Body = operations["createThreadRun"]["requestBody"]["content"]["application/json"];
export const shortest: Body = { input: "hi" };
export const run = (done: operations["getThreadRun"]["responses"][200]["content"]["application/json"]): string => done.status;
export const delta = (event: components["schemas"]["StreamEvent"]): string =>
  event.event === "on_chat_model_stream" && "delta" in event.data ? String(event.data.delta) : "";
// @ts-expect-error: there is no such key.
export const wrong: Body = { message: "hi" };
`;

test("types that openapi-typescript generates take the shortest request", async () => {
  const bin = join(installedPackages(...GENERATOR), "node_modules/.bin");
  const dir = await temporaryFolder();
  execFileSync(join(bin, "openapi-typescript"), ["openapi.yaml", "-o", join(dir, "skein.ts")]);
  await writeFile(join(dir, "caller.ts"), CALLER);
  const flags = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
  ];
  execFileSync(join(bin, "tsc"), [...flags, join(dir, "caller.ts")], { stdio: "pipe" });
});

inBrowser("/docs sends its requests below the path prefix that a proxy removes", async () => {
  const { url } = await startServer({ script: [{ say: "Tried out." }] });
  const proxy = await httpServer(async ({ method, path, body, headers }, response) => {
    if (!path.startsWith("/skein/")) return response.writeHead(404).end();
    const sent = {
      method,
      headers: { "content-type": headers["content-type"] ?? "" },
      ...(body && { body }),
    };
    const answer = await fetch(url + path.slice("/skein".length), sent);
    const kept = ["content-type", "content-security-policy"].map((name) => [name, answer.headers.get(name)]);
    return response.writeHead(answer.status, Object.fromEntries(kept)).end(await answer.text());
  });
  const tab = await openTab(`${proxy.url}/skein/docs#/runs/createThreadRun`);
  await executed(tab);
  expect(proxy.heard.map(({ path }) => path)).toContain("/skein/threads/tried/runs");
});

inBrowser("/docs sends the request that it suggests, at any address of the server", async () => {
  const { url } = await startServer({ script: [{ say: "Tried out." }] });
  const tab = await openTab(`${url}/docs#/runs/createThreadRun`);
  await executed(tab);
  await tab.screenshot("docs-try-out");
});

/** Tries the start of a run out, to its end. */
async function executed(tab: Tab): Promise<void> {
  const operation = tab.page.locator("#operations-runs-createThreadRun");
  await operation.getByRole("button", { name: "Try it out" }).click();
  await operation.getByPlaceholder("thread_id").fill("tried");
  await operation.getByRole("button", { name: "Execute" }).click();
  await operation.locator(".live-responses-table").getByText("Tried out.").first().waitFor();
}
