// Schedules of the operator, which the agents file contains.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { FileSchedules, writeFileSchedules } from "../../src/engine/schedules/file-schedules.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { startServer, temporaryFolder } from "../support/server.ts";

const AGENT = "agents: { assistant: { model: scripted:test, backend: { type: local } } }\n";
const YEARLY = 'cron: "0 9 1 1 *", timezone: Europe/Berlin, agent: assistant, input: Look back.';
const fileOf = (schedules: string) => `${AGENT}schedules: {${schedules}}\n`;

async function served(schedules: string, dir?: string) {
  const config = {
    ...{ store: "sqlite", auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] } },
    backends: { allow_local: true },
  };
  const { url, app, ...rest } = await startServer({
    config,
    agents: fileOf(schedules),
    ...(dir ? { dir } : {}),
  });
  const as = (user: string) =>
    createClient({
      baseUrl: url,
      headers: { "x-skein-tenant": "acme", "x-skein-user": user, "x-skein-scopes": "read,run" },
    });
  return {
    ...{ app, as, ada: as("ada") },
    async change(next: string) {
      await writeFile(join(rest.dir, "agents.yaml"), fileOf(next));
      await app.reload();
    },
  };
}

test("the user in the file has its schedules, and can neither change nor delete them", async () => {
  const { ada, as } = await served(`report: {${YEARLY}, tenant: acme, user: ada}`);
  const { items } = await ada.schedules.list();
  expect(items).toMatchObject([
    { id: "operator-report", from_file: true, status: "active", input: "Look back.", agent: "assistant" },
  ]);
  expect((await as("bob").schedules.list()).items).toEqual([]);
  const refused = { code: "invalid_request", message: expect.stringContaining("agents file") };
  const own = { cron: "* * * * *", input: "Mine." };
  await expect(ada.schedules.put("operator-report", own)).rejects.toMatchObject(refused);
  await expect(ada.schedules.put("operator-other", own)).rejects.toMatchObject(refused);
  await expect(ada.schedules.delete("operator-report")).rejects.toMatchObject(refused);
  expect(await ada.schedules.run("operator-report")).toMatchObject({ agent: "assistant" });
});

test("changing the file changes its schedules, and the same file changes nothing, even after a restart", async () => {
  const dir = await temporaryFolder();
  const report = `report: {${YEARLY}, tenant: acme, user: ada}`;
  const { app, ada, change } = await served(report, dir);
  const first = await ada.schedules.get("operator-report");
  await app.reload();
  await change(`${report}, other: { at: "2099-01-01T00:00:00Z", input: Hi., tenant: acme, user: ada }`);
  expect((await ada.schedules.list()).items.map(({ id }) => id)).toEqual([
    "operator-other",
    "operator-report",
  ]);
  expect(await ada.schedules.get("operator-report")).toEqual(first);
  await change(report.replace("Look back", "Look ahead"));
  const [changed, ...others] = (await ada.schedules.list()).items;
  expect(changed).toMatchObject({
    id: "operator-report",
    input: "Look ahead.",
    created_at: first.created_at,
  });
  expect(others).toEqual([]);
  await app.close();

  const again = await served(report.replace("Look back", "Look ahead"), dir);
  expect(await again.ada.schedules.get("operator-report")).toEqual(changed);
  await again.change("");
  expect((await again.ada.schedules.list()).items).toEqual([]);
});

test("a schedule whose only time has passed does not prevent the start", async () => {
  const { ada } = await served(
    `past: { at: "2020-01-01T00:00:00Z", input: Hi., tenant: acme, user: ada }, report: {${YEARLY}, tenant: acme, user: ada}`,
  );
  expect((await ada.schedules.list()).items.map(({ id }) => id)).toEqual(["operator-report"]);
});

test("a schedule that Skein paused continues when its file is read again", async () => {
  const { documents, close } = createMemoryStores();
  onTestFinished(() => close());
  const owner = { tenant: "acme", user: "ada" };
  const collection = { kind: "schedules", ...owner };
  const file = FileSchedules.parse({ report: { cron: "0 9 1 1 *", input: "Look back.", ...owner } });
  const write = () => writeFileSchedules({ documents, logger: { warn() {} } }, file);
  const stored = async () => (await documents.list(collection)).map(({ body }) => JSON.parse(body));
  await write();
  const [before] = await documents.list(collection);
  const [{ next, ...rest }] = await stored();
  const pause = { reason: "start_refused", message: "There is no agent.", since: 0 };
  const paused = { key: before?.key ?? "", seen: before?.version, body: JSON.stringify({ ...rest, pause }) };
  await documents.write(collection, [paused], { version: "paused" });
  await write();
  expect(await stored()).toMatchObject([{ next }]);
  expect((await stored())[0]).not.toHaveProperty("pause");
});

test.each([
  ['report: { cron: "0 25 * * *", input: Hi., user: ada }', /:2:\d+: schedules\.report\.cron: column 3/],
  ["report: { input: Hi., user: ada }", /:2:\d+: schedules\.report: Send either `cron`/],
  ['report: { cron: "0 9 * * *", timezone: Mars, input: Hi., user: ada }', /schedules\.report\.timezone/],
  ['report: { cron: "0 9 * * *", input: Hi. }', /schedules\.report\.user/],
  ['report: { cron: "0 9 * * *", agent: assistent, input: Hi., user: ada }', /did you mean `assistant`/],
])("an unreadable schedule is refused with its location in the file: %s", async (schedule, message) => {
  await expect(served(schedule)).rejects.toThrow(message);
});

test("two servers with different files leave no schedule that a later file cannot remove", async () => {
  const stores = createMemoryStores();
  onTestFinished(() => stores.close());
  const { documents } = stores;
  const owner = { tenant: "acme", user: "ada" };
  const file = (...names: string[]) =>
    FileSchedules.parse(
      Object.fromEntries(names.map((name) => [name, { cron: "0 9 1 1 *", input: name, ...owner }])),
    );
  const write = (names: readonly string[], through = documents) =>
    writeFileSchedules({ documents: through, logger: { warn() {} } }, file(...names));
  const stored = async () =>
    (await documents.list({ kind: "schedules", ...owner })).map(({ key }) => key).toSorted();
  await write(["old"]);
  // One server with the file before is slow: it reads its schedule once the other has deleted that.
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow: typeof documents = Object.assign(Object.create(documents), {
    async read(...args: Parameters<typeof documents.read>) {
      if ("kind" in args[0] && args[0].kind === "schedules") {
        reached.resolve();
        await gate.promise;
      }
      return documents.read(...args);
    },
  });
  const late = write(["old"], slow);
  await reached.promise;
  await write(["new"]);
  gate.resolve();
  await late;
  expect(await stored()).toEqual(["operator-new", "operator-old"]);
  await write([]);
  expect(await stored()).toEqual([]);
});
