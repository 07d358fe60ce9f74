// Backups of a server that runs, and restores that are killed at every step.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { createSqliteStores } from "../../src/engine/stores/sqlite/index.ts";
import { createLedger } from "../../src/sandbox/ledger.ts";
import { verifyBackup } from "../../src/skein/app/backup.ts";
import { finishRestore, restoreData } from "../../src/skein/app/restore.ts";
import { backUpTo } from "../../src/skein/cli/backup.ts";
import { box, MANY } from "../engine/stores/fixture-sandboxes.ts";
import { skein } from "../support/process.ts";
import { isNightly } from "../support/seed.ts";
import { startServer, temporaryFolder } from "../support/server.ts";

const DEFAULT = { tenant: "default", user: "default" };

async function ran(client: ReturnType<typeof createClient>, thread: string, input: string) {
  const { id } = await client.start(thread, { input });
  for await (const _ of client.runs.events(thread, id));
}

/** A backup with the thread `old`, made while the server runs, and a data folder that has `new` as well. */
async function backedUp() {
  const { url, dir, app } = await startServer({
    config: { store: "sqlite" },
    script: () => ({ say: "done" }),
  });
  const client = createClient({ baseUrl: url });
  await ran(client, "old", "one");
  await client.files.write("a.txt", "old");
  const writing = Array.from({ length: 20 }, (_, n) => ran(client, `during-${n}`, "two"));
  const [{ path }] = await Promise.all([client.admin.backUp(), ...writing]);
  await ran(client, "new", "three");
  await client.files.write("a.txt", "new");
  await app.close();
  const backup = join(await temporaryFolder(), "backup");
  cpSync(path, backup, { recursive: true });
  return { backup, data: join(dir, "data") };
}

/** Which of the two the folder holds; throws for a mixture. */
async function contentOf(dataDir: string): Promise<"old" | "new"> {
  await finishRestore(dataDir);
  const stores = createSqliteStores({ dataDir });
  try {
    const thread = await stores.threads.get(DEFAULT, "new");
    const [id = ""] = readdirSync(join(dataDir, "workspaces"));
    const file = readFileSync(join(dataDir, "workspaces", id, "files", "a.txt"), "utf8");
    expect(file).toBe(thread ? "new" : "old");
    expect(await stores.threads.messages(DEFAULT, "old")).toHaveLength(2);
    return thread ? "new" : "old";
  } finally {
    await stores.close();
  }
}

test("a backup of a busy server is complete, and a restore killed at any step leaves the old data or the new", async () => {
  const { backup, data } = await backedUp();
  expect(await contentOf(data)).toBe("new");
  const program = new URL("../fixtures/restore/killed.ts", import.meta.url).pathname;
  const seen = new Set<string>();
  const steps = 60;
  for (let at = 0; at < steps; at += isNightly ? 1 : 3) {
    const dir = join(await temporaryFolder(), "data");
    cpSync(data, dir, { recursive: true });
    const { signal, stdout } = spawnSync(process.execPath, [program, backup, dir, String(at)], {
      encoding: "utf8",
    });
    const content = await contentOf(dir);
    seen.add(content);
    if (signal === "SIGKILL") continue;
    expect(at - Number(stdout)).toBeLessThan(3);
    expect(content).toBe("old");
    expect(Number(stdout)).toBeGreaterThan(20);
    break;
  }
  expect(seen).toEqual(new Set(["old", "new"]));
});

test("a backup reports the number of sandboxes whose files are on engines and not included", async () => {
  const dir = await temporaryFolder();
  mkdirSync(join(dir, "data", "volumes", "b"), { recursive: true });
  const stores = createSqliteStores({ dataDir: join(dir, "data") });
  const ledger = createLedger(stores.documents);
  for (const id of ["own-disk", "volume-1", "volume-2"]) await ledger.enter(box(id, { engine: "b" }), MANY);
  await stores.close();
  writeFileSync(join(dir, "data", "volumes", "b", "own-disk.img"), "x");
  const { url } = await startServer({ dir, config: { store: "sqlite" } });
  const to = join(await temporaryFolder(), "backup");
  expect(await backUpTo(to, { url, key: undefined })).toMatch(
    /files of 2 sandboxes, which are in Docker volumes/,
  );
});

test("a damaged backup, and one for a folder in use, are refused and change nothing", async () => {
  const { backup, data } = await backedUp();
  const damaged = join(await temporaryFolder(), "damaged");
  cpSync(backup, damaged, { recursive: true });
  writeFileSync(join(damaged, "usage.db"), "x");
  await expect(restoreData(damaged, data)).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining("usage.db"),
  });
  mkdirSync(join(damaged, "empty"));
  await expect(restoreData(join(damaged, "empty"), data)).rejects.toMatchObject({ code: "invalid_request" });

  const stores = createSqliteStores({ dataDir: data });
  await expect(restoreData(backup, data)).rejects.toMatchObject({ code: "unavailable" });
  await stores.close();
  expect(await contentOf(data)).toBe("new");
  expect(existsSync(join(data, "restore"))).toBe(false);
});

test("a call that was answered after the backup is not reported as not run after its restore", async () => {
  const options = {
    config: { store: "sqlite" },
    script: [{ call: [{ tool: "pay", id: "c1" }] }, { say: "Paid." }],
  };
  const { url, dir, app } = await startServer(options);
  const client = createClient({ baseUrl: url });
  const tools = [{ name: "pay", description: "Pays.", parameters: { type: "object" } }];
  const { id } = await client.start("t", { input: "Pay.", tools });
  for await (const _ of client.runs.events("t", id));
  const { path } = await client.admin.backUp();
  const backup = join(await temporaryFolder(), "backup");
  cpSync(path, backup, { recursive: true });
  await ran(client, "t", "I have paid.");
  await app.close();

  await restoreData(backup, join(dir, "data"));
  const { at } = await verifyBackup(backup);
  const again = createClient({ baseUrl: (await startServer({ ...options, dir })).url });
  await ran(again, "t", "Have you paid?");
  const { items } = await again.threads.messages("t");
  expect(items.find(({ role }) => role === "tool")).toMatchObject({
    tool_call_id: "c1",
    error: expect.stringContaining(`restored from a backup made at ${at}`),
  });
});

test("a second simultaneous backup is refused, by the server and by `skein backup` to the same folder", async () => {
  const { url, dir } = await startServer({ config: { store: "sqlite" } });
  // Enough to be at work for a while.
  const files = join(dir, "data/workspaces/w/files");
  mkdirSync(files, { recursive: true });
  for (let n = 0; n < 1000; n++) writeFileSync(join(files, String(n)), "x");
  const backup = join(await temporaryFolder(), "backup");
  const first = skein(["backup", backup, "--url", url], {});
  await expect.poll(() => existsSync(join(dir, "data/backups")), { interval: 5 }).toBe(true);
  await expect(createClient({ baseUrl: url }).admin.backUp()).rejects.toMatchObject({
    status: 429,
    message: expect.stringContaining("A backup is in progress"),
  });
  await expect(backUpTo(backup, { url, key: undefined })).rejects.toMatchObject({
    code: "already_exists",
    message: expect.stringContaining(`another backup to ${backup} is in progress`),
  });
  expect(await first.exited).toBe(0);
  expect(await verifyBackup(backup)).toMatchObject({ format: 1 });
  expect(existsSync(`${backup}.part`)).toBe(false);
});

test("a store without files explains how to back it up", async () => {
  const { url } = await startServer();
  await expect(createClient({ baseUrl: url }).admin.backUp()).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("STORE is memory"),
  });
});
