import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { assistantMessage, type Message, userMessage } from "../../../src/agent/core/message.ts";
import type { NewThread, Stores } from "../../../src/agent/core/stores.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { exportThreads, type ReadableThreads } from "../../../src/skein/cli/threads/export.ts";
import { importThreads } from "../../../src/skein/cli/threads/import.ts";
import { serve, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";

const ADA: Owner = { tenant: "acme", user: "ada" };
const BOB: Owner = { tenant: "acme", user: "bob" };

/** By its clock no two threads change in the same millisecond. */
async function opened(): Promise<Stores> {
  let time = Date.now();
  const stores = createSqliteStores({ dataDir: await temporaryFolder(), now: () => time++ });
  onTestFinished(() => stores.close());
  return stores;
}

const PARENT = { thread_id: "trip", run_id: "run_1", call_id: "call_1", background: true };

const saidBy = (model: string, text: string): Message => ({ ...assistantMessage(text), model });

/** Two threads, one of which works for the other, and one of another user. */
async function family({ threads }: Stores): Promise<NewThread[]> {
  const all: NewThread[] = [
    {
      ...{ id: "trip", agent: "planner", title: "The trip", metadata: { colour: "blue" } },
      messages: [userMessage("Where\nto?"), saidBy("acme:large:v2", "Norway")],
      state: {
        todos: [{ id: "1", title: "Book", status: "pending" }],
        interrupts: { a: {} },
        grants: ["all"],
      },
    },
    { id: "child", agent: "coder", metadata: {}, parent: PARENT, messages: [userMessage("Look it up.")] },
  ];
  for (const thread of all) await threads.create(ADA, thread);
  await threads.create(BOB, { id: "his", metadata: {}, messages: [userMessage("secret")] });
  return all;
}

async function exported() {
  const stores = await opened();
  const all = await family(stores);
  const dir = join(await temporaryFolder(), "out");
  const told = await exportThreads(stores.threads, ADA, dir);
  return { stores, all, dir, told };
}

describe("an export", () => {
  test("has a folder for each of a user's threads, with its data and its messages line by line", async () => {
    const { dir, all, told } = await exported();
    expect(told).toBe(`Exported 2 threads with 3 messages to ${dir}.`);
    expect((await readdir(dir)).toSorted()).toEqual(["child", "trip"]);
    const about = JSON.parse(await readFile(join(dir, "trip", "metadata.json"), "utf8"));
    expect(about).toMatchObject({
      ...{ session_id: "trip", agent_type: "planner", title: "The trip", metadata: { colour: "blue" } },
      ...{ provider: "acme", model: "large:v2", child_session_ids: ["child"] },
      ...{ created_at: expect.stringMatching(/Z$/), updated_at: expect.stringMatching(/Z$/) },
      state: { todos: [{ title: "Book" }] },
    });
    expect(about).not.toHaveProperty("messages");
    expect(Object.keys(about.state)).toEqual(["todos"]);
    const lines = (await readFile(join(dir, "trip", "history.jsonl"), "utf8")).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(all[0]?.messages);
    const child = JSON.parse(await readFile(join(dir, "child", "metadata.json"), "utf8"));
    expect(child).toMatchObject({ parent_session_id: "trip", parent_tool_use_id: "call_1" });
  });

  test("is readable only for its user, and overwrites nothing", async () => {
    const { dir, stores } = await exported();
    for (const path of ["", "trip", "trip/metadata.json", "trip/history.jsonl"])
      expect((await stat(join(dir, path))).mode & 0o077).toBe(0);
    await expect(exportThreads(stores.threads, ADA, dir)).rejects.toMatchObject({ code: "already_exists" });
  });

  test("includes more than one page of threads and of messages", async () => {
    const stores = await opened();
    const messages = Array.from({ length: 250 }, (_, index) => userMessage(`message ${index}`));
    for (let index = 0; index < 101; index++)
      await stores.threads.create(ADA, {
        id: `t${index}`,
        metadata: {},
        ...(index === 7 ? { messages } : {}),
      });
    const dir = await temporaryFolder();
    expect(await exportThreads(stores.threads, ADA, dir)).toContain("101 threads with 250 messages");
    const history = await readFile(join(dir, "t7", "history.jsonl"), "utf8");
    expect(
      history
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    ).toEqual(messages.map(({ id }) => id));
  });
});

test("an export continues even if threads are deleted or lose messages during it", async () => {
  const { threads } = await opened();
  const messages = Array.from({ length: 150 }, (_, index) => userMessage(`message ${index}`));
  for (const id of ["cleared", "deleted", "kept"]) await threads.create(ADA, { id, metadata: {}, messages });
  const changes = new Map([
    ["cleared", () => threads.clear(ADA, "cleared")],
    ["deleted", () => threads.delete(ADA, "deleted")],
  ]);
  const used: ReadableThreads = {
    ...threads,
    async messages(owner, id, query) {
      const page = await threads.messages(owner, id, query);
      await changes.get(id)?.();
      changes.delete(id);
      return page;
    },
  };
  const dir = await temporaryFolder();
  expect(await exportThreads(used, ADA, dir)).toContain("Exported 2 threads with 150 messages");
  expect((await readdir(dir)).toSorted()).toEqual(["cleared", "kept"]);
  expect(await readFile(join(dir, "cleared/history.jsonl"), "utf8")).toBe("");
});

describe("an import", () => {
  test("creates the same threads for the given owner, in the same order", async () => {
    const { dir, stores, all } = await exported();
    const other = await opened();
    expect(await importThreads(other.threads, BOB, dir)).toMatch(/^Imported 2 threads with 3 messages/);
    const listed = async ({ threads }: Stores, owner: Owner) =>
      (await threads.list(owner, { limit: 10, children: true })).items.map(
        ({ created_at: _, updated_at: __, ...rest }) => rest,
      );
    expect(await listed(other, BOB)).toEqual(await listed(stores, ADA));
    for (const { id, messages = [] } of all) expect(await other.threads.messages(BOB, id)).toEqual(messages);
    expect(await other.threads.state(BOB, "trip")).toEqual({ todos: all[0]?.state?.todos });
    expect((await other.threads.list(BOB, { limit: 10, parent: "trip" })).items).toMatchObject([
      { id: "child", parent: PARENT },
    ]);
  });

  test("keeps branches as branches", async () => {
    const stores = await opened();
    const branch = { id: "branch", metadata: {}, parent: { ...PARENT, replaced: "msg_1" } };
    for (const thread of [{ id: "trip", metadata: {} }, branch]) await stores.threads.create(ADA, thread);
    const dir = join(await temporaryFolder(), "out");
    await exportThreads(stores.threads, ADA, dir);
    const others = await opened();
    await importThreads(others.threads, ADA, dir);
    expect((await others.threads.get(ADA, "branch"))?.parent).toEqual(branch.parent);
  });

  test("continues an interrupted one if told to skip existing threads", async () => {
    const { dir, stores } = await exported();
    await stores.threads.delete(ADA, "child");
    const told = await importThreads(stores.threads, ADA, dir, { resumes: true });
    expect(told).toMatch(
      /^Imported 1 thread with 1 message from .*\. Skipped 1 thread that already existed\.$/,
    );
    expect(await stores.threads.messages(ADA, "child")).toHaveLength(1);
    expect(await stores.threads.messages(ADA, "trip")).toHaveLength(2);
  });

  test("keeps messages with unusual line separators unchanged", async () => {
    const messages = [userMessage("a\u2028b\u2029c\rd\u0085e\n")];
    const stores = await opened();
    await stores.threads.create(ADA, { id: "t", metadata: {}, messages });
    const dir = await temporaryFolder();
    await exportThreads(stores.threads, ADA, dir);
    await importThreads(stores.threads, BOB, dir);
    expect(await stores.threads.messages(BOB, "t")).toEqual(messages);
  });

  test("ignores permissions that were written into the files", async () => {
    const { dir } = await exported();
    const file = join(dir, "child", "metadata.json");
    const about = JSON.parse(await readFile(file, "utf8"));
    await writeFile(file, JSON.stringify({ ...about, state: { grants: ["all"], todos: [] } }));
    const { threads } = await opened();
    await importThreads(threads, ADA, dir);
    expect(await threads.state(ADA, "child")).toEqual({ todos: [] });
  });

  test("of existing threads is refused before anything is created", async () => {
    const { dir, stores } = await exported();
    await stores.threads.delete(ADA, "child");
    await expect(importThreads(stores.threads, ADA, dir)).rejects.toMatchObject({
      ...{ code: "invalid_request", message: expect.stringContaining("Thread `trip` already exists.") },
    });
    expect(await stores.threads.get(ADA, "child")).toBeUndefined();
  });

  test.each<[string, (dir: string) => Promise<unknown>, RegExp]>([
    [
      "a line that is no JSON",
      (dir) => appendFile(join(dir, "trip/history.jsonl"), "{\n"),
      /trip\/history\.jsonl:3: must be JSON/,
    ],
    [
      "a line that is no message",
      (dir) => writeFile(join(dir, "trip/history.jsonl"), '{"id":"1","role":"boss","content":""}\n'),
      /trip\/history\.jsonl:1: .*role/,
    ],
    [
      "a line that is longer than any message",
      (dir) => appendFile(join(dir, "trip/history.jsonl"), `{"${"x".repeat(65 * 1024 * 1024)}`),
      /trip\/history\.jsonl:3: is longer than 64 MiB/,
    ],
    [
      "a state that is nested too deep to be read",
      (dir) =>
        writeFile(
          join(dir, "trip/metadata.json"),
          `{"session_id":"trip","state":{"todos":${"[".repeat(20_000)}${"]".repeat(20_000)}}}`,
        ),
      /trip\/metadata\.json: must not be nested more than 500 levels deep; it has 20,002 levels/,
    ],
    [
      "a message that comes twice",
      async (dir) => {
        const file = join(dir, "child/history.jsonl");
        await appendFile(file, `\n${await readFile(file, "utf8")}`);
      },
      /child\/history\.jsonl:3: duplicate message `msg_\w+`/,
    ],
    [
      "a history that is missing",
      (dir) => rm(join(dir, "trip/history.jsonl")),
      /history\.jsonl does not exist/,
    ],
    [
      "an export that was cut off",
      (dir) => rm(join(dir, "trip/metadata.json")),
      /metadata\.json does not exist.*incomplete/,
    ],
    [
      "a folder of another name",
      async (dir) => {
        await mkdir(join(dir, "other"));
        await writeFile(join(dir, "other/metadata.json"), '{"session_id":"trip"}');
      },
      /session_id must be the name of the folder, `other`/,
    ],
    [
      "an id that is a path",
      async (dir) => {
        await mkdir(join(dir, "a b"));
        await writeFile(join(dir, "a b/metadata.json"), '{"session_id":"../x"}');
      },
      /a b\/metadata\.json: session_id/,
    ],
  ])("of %s is refused with its location before anything is created", async (_, spoil, words) => {
    const { dir } = await exported();
    await spoil(dir);
    const { threads } = await opened();
    await expect(importThreads(threads, ADA, dir)).rejects.toMatchObject({
      ...{ code: "invalid_request", message: expect.stringMatching(words) },
    });
    expect((await threads.list(ADA, { limit: 10, children: true })).items).toEqual([]);
  });
});

test("the command line moves threads from one data folder to another", async () => {
  const dir = await temporaryFolder();
  const env = { DATA_DIR: join(dir, "data"), AGENTS_FILE: join(dir, "agents.yaml") };
  const before = createSqliteStores({ dataDir: env.DATA_DIR });
  const messages = [userMessage("remember this")];
  await before.threads.create({ tenant: "default", user: "default" }, { id: "t1", metadata: {}, messages });
  await before.close();

  const writing = skein(["threads", "export", join(dir, "out")], env);
  const ownerless = skein(["threads", "import", join(dir, "out")], { ...env, AUTH: "api_key" });
  expect([await writing.exited, writing.output()]).toEqual([0, expect.stringMatching(/^Exported 1 thread /)]);
  expect([await ownerless.exited, ownerless.output()]).toEqual([2, expect.stringMatching(/--user/)]);
  const elsewhere = { ...env, DATA_DIR: join(dir, "other") };
  const reading = skein(
    ["threads", "import", join(dir, "out"), "--tenant", "acme", "--user", "ada"],
    elsewhere,
  );
  expect([await reading.exited, reading.output()]).toEqual([0, expect.stringMatching(/^Imported 1 thread /)]);
  const after = createSqliteStores({ dataDir: elsewhere.DATA_DIR });
  expect(await after.threads.messages(ADA, "t1")).toEqual(messages);
  await after.close();
});

test("the command line exports the threads that its key can read from a running server", async () => {
  const dir = await temporaryFolder();
  const env = { DATA_DIR: join(dir, "data"), AGENTS_FILE: join(dir, "agents.yaml"), AUTH: "api_key" };
  const before = createSqliteStores({ dataDir: env.DATA_DIR });
  const all = await family(before);
  await before.close();
  const { url } = await serve(dir, "- say: hello", env);

  const locked = skein(["threads", "export", join(dir, "a"), "--tenant", "acme", "--user", "ada"], env);
  expect([await locked.exited, locked.output()]).toEqual([1, expect.stringMatching(/in use/)]);
  const stranger = skein(["threads", "export", join(dir, "b"), "--url", url], env);
  expect([await stranger.exited, stranger.output()]).toEqual([1, expect.stringMatching(/key/i)]);
  const vague = skein(["threads", "export", join(dir, "c"), "--url", url, "--user", "ada"], env);
  expect([await vague.exited, vague.output()]).toEqual([2, expect.stringMatching(/SKEIN_API_KEY/)]);

  const making = skein(["keys", "create", "--tenant", "acme", "--user", "ada", "--scopes", "read"], env);
  await making.exited;
  const SKEIN_API_KEY = /sk_\S+/.exec(making.output())?.[0] ?? "";
  const out = join(dir, "out");
  const writing = skein(["threads", "export", out, "--url", url], { ...env, SKEIN_API_KEY });
  expect([await writing.exited, writing.output()]).toEqual([
    0,
    `Exported 2 threads with 3 messages to ${out}.\n`,
  ]);
  const { threads } = await opened();
  await importThreads(threads, ADA, out);
  for (const { id, messages = [] } of all) expect(await threads.messages(ADA, id)).toEqual(messages);
  expect(await threads.get(ADA, "child")).toMatchObject({ parent: PARENT });
});
