import { mkdir, readdir, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Owner } from "../../src/protocol/ids.ts";
import { BackendOptions } from "../../src/sandbox/index.ts";
import { execute, readAll, refuses } from "../support/backend.ts";
import { ada, config, opened } from "./opened.ts";

const { signal } = new AbortController();
const bob = { tenant: "acme", user: "bob" };

test("an owner has one backend per name, however many calls request it at once", async () => {
  const { pool } = await opened();
  const named = { type: "local", name: "other" };
  const backends = await Promise.all(Array.from({ length: 20 }, () => pool.get(ada, named)));
  expect(new Set(backends).size).toBe(1);
  expect(await pool.get(ada, config)).not.toBe(backends[0]);
});

test("agents share files by the backend's name", async () => {
  const { pool, backend } = await opened();
  await backend.write("f", Buffer.from("one"), signal);
  const same = await pool.get(ada, { ...config, workdir: "/home/agent" });
  expect((await same.stat("f", signal)).path).toBe("/home/agent/f");
  expect(String(await readAll(same, "/home/agent/f"))).toBe("one");
  const other = await pool.get(ada, { type: "local", name: "other" });
  await refuses(() => other.stat("f", signal), "not_found", "`f`");
});

test("one machine is for one user", async () => {
  const { pool, backend } = await opened({ maxBackends: 3 });
  await refuses(() => pool.get(bob, config), "backend_refused", "ALLOW_LOCAL_BACKEND=true");
  await refuses(() => pool.get({ ...ada, tenant: "other" }, config), "backend_refused", "type: docker");
  expect(await pool.status(bob, config)).toMatchObject({ status: "stopped" });
  await pool.get(ada, { type: "local", name: "other" });
  expect(await pool.get(ada, config)).toBe(backend);
});

test("a plugin's backend is created once per user, again after a failure, and erased with only its user", async () => {
  const { backend } = await opened();
  const made: string[] = [];
  const closed: string[] = [];
  const memo = {
    options: z.object({}),
    create(_: object, { owner: { tenant, user } }: { owner: Owner }) {
      made.push(`${tenant}/${user}`);
      if (made.length === 1) throw new Error("not yet");
      return { ...backend, close: async () => void closed.push(`${tenant}/${user}`) };
    },
  };
  const { pool } = await opened({ own: { memo } });
  await refuses(() => pool.get(ada, { type: "memo" }), "backend_failed", "not yet");
  const others = [bob, { tenant: "acme", user: "adam" }, { tenant: "acm", user: "ada" }];
  for (const owner of [ada, ada, ...others]) await pool.get(owner, { type: "memo" });
  expect(made).toEqual(["acme/ada", "acme/ada", "acme/bob", "acme/adam", "acm/ada"]);
  await pool.erase(ada);
  expect(closed).toEqual(["acme/ada"]);
  await pool.close();
  expect(closed.toSorted()).toEqual(["acm/ada", "acme/ada", "acme/adam", "acme/bob"]);
});

test("users who share a machine have their own files, under any name", async () => {
  const { pool, dataDir, backend } = await opened({ allowSeveralUsers: true });
  await backend.write("f", Buffer.from("ada's"), signal);
  const owners: Owner[] = [
    bob,
    { tenant: "acmeada", user: "" },
    { tenant: "", user: "acmeada" },
    { tenant: "../../..", user: "/etc" },
    { tenant: "acme", user: 'ada"],["' },
    { tenant: "acme\0", user: "x".repeat(5000) },
  ];
  for (const owner of owners) {
    const theirs = await pool.get(owner, config);
    await refuses(() => theirs.stat("f", signal), "not_found", "`f`");
    await theirs.write("f", Buffer.from(JSON.stringify(owner)), signal);
  }
  expect(String(await readAll(backend, "f"))).toBe("ada's");
  const folders = await readdir(join(dataDir, "workspaces"));
  expect(folders.length).toBe(owners.length + 1);
  for (const folder of folders) expect(folder).toMatch(/^[0-9a-f]{32}$/);
});

test("reports what a backend is doing", async () => {
  const { pool } = await opened();
  const named = { type: "local", name: "other" };
  expect(await pool.status(ada, named)).toEqual({
    ...{ name: "other", type: "local", status: "stopped", workdir: "/workspace" },
  });
  const starting = pool.start(ada, named);
  expect((await pool.status(ada, named)).status).toBe("starting");
  expect((await starting).status).toBe("running");
  expect((await pool.stop(ada, named)).status).toBe("stopped");
  expect((await pool.status(ada, named)).status).toBe("stopped");
});

test("reports why a backend cannot be created, and tries again on the next call", async () => {
  const { pool, dataDir } = await opened();
  const named = { type: "local", name: "broken" };
  const probe = await opened({ dataDir: join(dataDir, "probe") });
  await probe.pool.get(ada, named);
  const known = new Set(await readdir(join(dataDir, "workspaces")));
  const folder = (await readdir(join(dataDir, "probe", "workspaces"))).find((name) => !known.has(name)) ?? "";
  await writeFile(join(dataDir, "workspaces", folder), "in the way");
  await refuses(() => pool.get(ada, named), "backend_failed", "cannot be created");
  expect(await pool.status(ada, named)).toMatchObject({
    status: "error",
    error: expect.stringContaining("cannot be created"),
  });
  await unlink(join(dataDir, "workspaces", folder));
  expect((await pool.get(ada, named)).type).toBe("local");
  expect((await pool.status(ada, named)).status).toBe("running");
});

test("stopping ends a command and keeps the files", async () => {
  const { pool, backend } = await opened();
  const command = backend.exec("echo x > f; echo running; sleep 300", { signal, timeoutMs: 300_000 });
  await command.next();
  const ended = command.next();
  await pool.stop(ada, config);
  expect(await ended).toMatchObject({ done: true, value: { ended: "cancelled" } });
  expect(String(await readAll(await pool.get(ada, config), "f"))).toBe("x\n");
});

test("makes room by stopping the one that was idle longest", async () => {
  const { pool } = await opened({ maxBackends: 2 });
  const [a, b, c] = ["a", "b", "c"].map((name) => ({ type: "local", name })) as [
    typeof config,
    typeof config,
    typeof config,
  ];
  const busy = (await pool.get(ada, a)).exec("echo running; sleep 300", { signal, timeoutMs: 300_000 });
  await busy.next();
  await pool.get(ada, b);
  await pool.get(ada, c);
  const states = () => Promise.all([a, b, c].map(async (each) => (await pool.status(ada, each)).status));
  await expect.poll(states).toEqual(["running", "stopped", "running"]);

  const alsoBusy = (await pool.get(ada, c)).exec("echo running; sleep 300", { signal, timeoutMs: 300_000 });
  await alsoBusy.next();
  await refuses(() => pool.get(ada, b), "unavailable", "2 workspaces");
  await pool.stop(ada, a);
  const last = (await pool.get(ada, b)).exec("echo running; sleep 300", { signal, timeoutMs: 300_000 });
  await last.next();
  await refuses(() => pool.get(ada, a), "unavailable", "2 workspaces");
  await pool.close();
});

test("makes room by stopping one of the tenant with the most, however long others were idle", async () => {
  const { pool } = await opened({ maxBackends: 3, allowSeveralUsers: true });
  const [first, flood] = [{ tenant: "other", user: "eve" }, ada];
  await pool.get(first, config);
  const names = ["a", "b", "c", "d"].map((name) => ({ type: "local", name }));
  for (const each of names) await pool.get(flood, each);
  expect((await pool.status(first, config)).status).toBe("running");
  const states = () => Promise.all(names.map(async (each) => (await pool.status(flood, each)).status));
  await expect.poll(states).toEqual(["stopped", "stopped", "running", "running"]);
});

test("after closing, nothing runs and nothing starts", async () => {
  const { pool, backend } = await opened();
  const command = backend.exec("echo running; sleep 300", { signal, timeoutMs: 300_000 });
  await command.next();
  const ended = command.next();
  await pool.close();
  expect(await ended).toMatchObject({ done: true, value: { ended: "cancelled" } });
  await refuses(() => pool.get(ada, config), "shutting_down", "stopping");
  await refuses(() => execute(backend, "echo x"), "shutting_down", "stopping");
  await pool.close();
});

test.each([
  [{ type: "dokcer" }, "type"],
  [{ type: "local", image: "x" }, "image"],
  [{ type: "local", workdir: "relative" }, "workdir"],
  [{ type: "local", workdir: "/a/../.." }, "workdir"],
  [{ type: "local", name: "../x" }, "name"],
  [{ type: "local", timeout: 0 }, "timeout"],
])("refuses the configuration %j", async (wrong, words) => {
  const { pool } = await opened();
  await refuses(() => pool.get(ada, wrong), "config_invalid", words);
  expect(BackendOptions.safeParse(wrong).success).toBe(false);
});

test("a data folder behind a link works like any other", async () => {
  const { dataDir } = await opened();
  await mkdir(join(dataDir, "disk"));
  await symlink(join(dataDir, "disk"), join(dataDir, "link"));
  const { backend } = await opened({ dataDir: join(dataDir, "link") });
  await backend.write("a/b", Buffer.from("x"), signal);
  expect((await execute(backend, "cat a/b")).output).toBe("x");
  expect((await backend.stat("a/b", signal)).path).toBe("/workspace/a/b");
});
