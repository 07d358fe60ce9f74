// What the trail keeps when many entries come at once, when the store fails, and when the server stops.

import { expect, onTestFinished, test } from "vitest";
import type { Documents } from "../../../src/agent/core/documents.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { NewEntry } from "../../../src/engine/audit/entry.ts";
import { createAudit } from "../../../src/engine/audit/index.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { Logger } from "../../../src/lib/logger.ts";
import { ServerConfig } from "../../../src/server/config/server.ts";
import { openAudit } from "../../../src/skein/app/nouns.ts";

const entry = (tenant: string, id: string): NewEntry => ({
  ...{ tenant, action: "thread.create", outcome: "ok" },
  ...{ actor: { type: "user", id: "ada", user: "ada" }, target: { type: "thread", id } },
});

function open({
  count = 100_000,
  ms = Number.POSITIVE_INFINITY,
  stores = createMemoryStores(),
  bend = (documents: Documents) => documents,
} = {}) {
  const lines: string[] = [];
  const counted = { written: 0, dropped: 0 };
  const log = (details: object, message: string) =>
    lines.push(`${message} ${JSON.stringify(details, ["tenant", "dropped", "entries"])}`);
  const logger: Logger = { info: log, warn: log, error: log };
  const audit = createAudit({
    ...{ documents: bend(stores.documents), logger, isLogged: false },
    kept: { ms, count },
    onWritten: async () => {},
    onCounted: (outcome, entries) => {
      counted[outcome] += entries;
    },
  });
  onTestFinished(async () => {
    await audit.close();
    await stores.close();
  });
  const idsOf = async (tenant: string, most = 10_000) =>
    (await audit.list(tenant, { limit: most, action: "thread" })).items.map(({ target }) => target?.id);
  return { audit, lines, counted, idsOf };
}

test("dropped entries are counted, logged and recorded as an entry, and another tenant loses nothing", async () => {
  const { audit, counted, lines, idsOf } = open();
  for (let n = 0; n < 2_600; n++) audit.record(entry("loud", `t${n}`));
  audit.record(entry("quiet", "mine"));
  await expect.poll(() => counted).toEqual({ written: 2_002, dropped: 600 });
  const gaps = (await audit.list("loud", { limit: 10, action: "audit.gap" })).items;
  expect(gaps).toMatchObject([{ dropped: 600, outcome: "failed", actor: { type: "server" } }]);
  expect(await idsOf("quiet")).toEqual(["mine"]);
  const one = { limit: 10, user: "bob" };
  const first = await audit.list("loud", one);
  expect(first).toEqual({ items: [], next_cursor: expect.any(String) });
  expect(await audit.list("loud", { ...one, cursor: first.next_cursor })).toEqual({ items: [] });
  expect(lines).toContainEqual(expect.stringMatching(/audit trail entries were dropped.*"loud"/));
});

test("entries that the store refuses are written later, once each", async () => {
  let failures = 2;
  const bend = (documents: Documents): Documents => ({
    ...documents,
    async write(...args) {
      if (failures-- > 0) throw new AppError("unavailable", "The store is away.");
      const outcome = await documents.write(...args);
      // The store has written, and its answer is lost.
      if (failures-- === -2) throw new AppError("unavailable", "The store is away.");
      return outcome;
    },
  });
  const { audit, counted, idsOf } = open({ bend });
  for (const id of ["a", "b", "c"]) audit.record(entry("acme", id));
  await expect.poll(() => counted.written).toBe(3);
  expect(await idsOf("acme")).toEqual(["c", "b", "a"]);
});

test("a server that stops first writes waiting entries, and reports how many it could not write", async () => {
  const good = open();
  for (let n = 0; n < 250; n++) good.audit.record(entry("acme", `t${n}`));
  await good.audit.close();
  expect(await good.idsOf("acme")).toHaveLength(250);

  const away = open({
    bend: (documents) => ({
      ...documents,
      write: async () => {
        throw new AppError("unavailable", "The store is away.");
      },
    }),
  });
  for (let n = 0; n < 250; n++) away.audit.record(entry("acme", `t${n}`));
  await away.audit.close();
  expect(away.lines).toContainEqual('audit trail entries were lost because the store failed {"entries":250}');
});

test("a tenant's oldest entries are deleted above the maximum, and those of other tenants are kept", async () => {
  const { audit, counted, idsOf } = open({ count: 1_000 });
  audit.record(entry("other", "theirs"));
  for (let n = 0; n < 1_900; n++) audit.record(entry("acme", `t${n}`));
  await expect.poll(() => counted.written).toBe(1_901);
  const ids = await idsOf("acme");
  expect(ids.length).toBeGreaterThanOrEqual(1_000);
  expect(ids.length).toBeLessThanOrEqual(1_100);
  expect(ids.slice(0, 500)).toEqual(Array.from({ length: 500 }, (_, n) => `t${1_899 - n}`));
  expect(await idsOf("other")).toEqual(["theirs"]);
});

test("entries are deleted after `audit.keep` by any process, and not earlier", async () => {
  let time = 0;
  const stores = createMemoryStores({ now: () => Date.now() + time });
  const [day, ms] = [24 * 3_600_000, 30 * 24 * 3_600_000];
  const { audit, counted, idsOf } = open({ stores, ms });
  const write = async (id: string) => {
    audit.record(entry("acme", id));
    await expect.poll(async () => (await idsOf("acme"))[0]).toBe(id);
  };
  await write("old");
  time = 20 * day;
  await write("new");
  time = 31 * day;
  open({ stores, ms }).audit.open();
  await expect.poll(() => idsOf("acme")).toEqual(["new"]);
  expect(counted.written).toBe(2);
});

test("a server keeps at most `audit.entries` of a tenant", async () => {
  const stores = createMemoryStores();
  const config = ServerConfig.parse({ store: "memory", audit: { entries: 1_000 } });
  const logger: Logger = { info() {}, warn() {}, error() {} };
  const webhooks = { emit: async () => {} };
  const audit = openAudit(config, stores, { logger, metrics: undefined, webhooks, records: undefined });
  for (let n = 0; n < 1_300; n++) audit.record(entry("acme", `t${n}`));
  await audit.close();
  const { items } = await audit.list("acme", { limit: 2_000 });
  expect(items.length).toBeGreaterThanOrEqual(1_000);
  expect(items.length).toBeLessThanOrEqual(1_100);
  await stores.close();
});
