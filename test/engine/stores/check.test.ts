import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import { claimDue } from "../../../src/agent/core/document-claims.ts";
import { assistantMessage, userMessage } from "../../../src/agent/core/message.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { TURN_MS } from "../../../src/engine/stores/check/facts.ts";
import type { RuleName } from "../../../src/engine/stores/check/rules.ts";
import { createPostgresStores } from "../../../src/engine/stores/postgres/index.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { tenantTag } from "../../../src/engine/stores/redis/keys.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { startRedis } from "../../support/redis.ts";
import { checked, contradictionsIn, type StorePlace } from "../../support/store-check.ts";
import { ADA, claimed, delta, done, message, newRun, PATIENT, patch, upTo } from "./fixture.ts";

const [redis, postgres] = await Promise.all([startRedis("--databases", "200"), startPostgres()]);
afterAll(() => Promise.all([redis?.close(), postgres?.close()]));

const INTERRUPT = {
  ...{
    id: "approval_c1",
    kind: "approval",
    call_id: "c1",
    run_id: "r1",
    name: "pay",
    args: {},
    prompt: "Pay?",
  },
  created_at: "2026-11-21T10:00:00.000Z",
};

/** A thread that asks and waits for a call, one that is busy and has a queue, and one that is free. */
async function fill(stores: AllStores): Promise<void> {
  const { lease } = await claimed(stores, "asks", { id: "r1" });
  const call = { id: "c1", name: "pay", args: {} };
  const asked: StreamEvent[] = [
    delta("I "),
    {
      event: "on_message",
      data: { message: { id: "m_1", role: "assistant", content: [], tool_calls: [call], model: "x" } },
    } as unknown as StreamEvent,
    { event: "on_interrupt", data: INTERRUPT } as unknown as StreamEvent,
    patch("interrupts", { [INTERRUPT.id]: INTERRUPT }),
  ];
  await stores.events.append(lease, [message("pay")]);
  await stores.events.append(lease, asked);
  const key = { owner: ADA, thread_id: "asks", call_id: "c1" };
  const expires_at = new Date(Date.now() + 86_400_000).toISOString();
  await stores.deferredCalls.open({
    ...key,
    run_id: "r1",
    tool: "pay",
    token_hash: tokenHash("t"),
    expires_at,
  });
  await stores.deferredCalls.accept(key);
  await stores.events.append(lease, [done("interrupted")]);

  const busy = await claimed(stores, "busy", { id: "b1" });
  await stores.events.append(busy.lease, [message("one"), message("two")]);
  await stores.runs.start(ADA, newRun("busy", { id: "b2" }), "queue");
  await stores.runs.steer(ADA, "busy", "b1", userMessage("psst"));

  const free = await claimed(stores, "free", { id: "f1" });
  await stores.events.append(free.lease, [message("hello"), delta("a"), delta("b"), message("world")]);
  await stores.events.append(free.lease, [done()]);

  const due = Date.now() + 86_400_000;
  const writes = [{ key: "box", seen: undefined, body: "{}", due }];
  await stores.documents.write({ kind: "sandboxes" }, writes, { version: "v1" });
  await stores.documents.write({ kind: "plans", tenant: "acme" }, writes, { version: "v2" });
  await stores.documents.write({ kind: "alarms", ...ADA }, writes, { version: "v3" });
  await stores.quotas.setStored(
    ADA,
    { id: "free", bytes: 100, ms: 86_400_000 },
    { tenant: undefined, user: undefined },
  );
}

/** A run from its beginning to its end, with all that it may leave behind on its way. */
async function runOnce(stores: AllStores, thread: string, round: number): Promise<void> {
  const { runs, events, threads, documents } = stores;
  const { run, lease } = await claimed(stores, thread);
  await events.append(lease, [message("one"), delta("a"), delta("b"), patch("files", { [run.id]: 1 })]);
  const next = newRun(thread);
  await runs.start(ADA, next, "queue");
  await runs.steer(ADA, thread, run.id, userMessage("psst"));
  for (const text of ["two", "three"]) await events.append(lease, [delta(text), message(text)]);
  await events.append(lease, [done()]);
  const claim = await runs.claimNext(ADA, thread);
  if (claim) await events.append(claim.lease, [message("four"), done("cancelled")]);
  const plans = { kind: "plans", tenant: `${round % 3}` };
  const due = (await documents.read(plans, [])).now;
  await documents.write(plans, [{ key: run.id, seen: undefined, body: "{}", due }], {
    version: `v${run.id.slice(4)}`,
  });
  for (const { collection, key, version: seen } of await claimDue(documents, "plans", {
    limit: 5,
    leaseMs: 60_000,
  }))
    await documents.write(collection, [{ key, seen, body: undefined }], { version: `vend${key.slice(4)}` });
  if (round % 2 === 1) await threads.fork(ADA, thread, { id: `${thread}_fork`, metadata: {} });
  else for (const id of [thread, `${thread}_fork`]) await threads.delete(ADA, id);
}

const opened = async (place: StorePlace): Promise<AllStores> =>
  "sqlite" in place
    ? createSqliteStores({ dataDir: place.sqlite })
    : "redis" in place
      ? createRedisStores({ url: place.redis, ...PATIENT })
      : createPostgresStores({ url: place.postgres, ...PATIENT });

interface Damage {
  readonly rule: RuleName;
  /** What damages the tables of both databases, or of one. */
  readonly sql?: string;
  readonly sqlite?: string;
  readonly postgres?: string;
  readonly usage?: string;
  /** A command; `{asks}`, `{busy}` and `{free}` are places of threads. */
  readonly redis?: readonly (readonly string[])[];
}

/** Long past, and the same in each process: the name of a test has it. */
const LATE = 1;

/** More due documents than a check reads at a time, all of them before the others. */
const MANY_DOCUMENTS =
  "for n = 1, 500 do redis.call('HSET', KEYS[1], n, 'v {}'); redis.call('ZADD', KEYS[2], n, n) end";

const DAMAGES: readonly Damage[] = [
  {
    rule: "busy_without_run",
    sqlite: "UPDATE threads SET status = 'busy' WHERE id = 'free'",
    postgres:
      "INSERT INTO turns (owner, thread_id, tenant, due) SELECT owner, id, '[]', 0 FROM threads WHERE id = 'free'",
  },
  {
    rule: "run_on_free_thread",
    sqlite: "UPDATE threads SET status = 'idle' WHERE id = 'busy'",
    postgres: "DELETE FROM turns WHERE thread_id = 'busy'",
  },
  {
    rule: "unknown_run",
    sql: "UPDATE deferred_calls SET run_id = 'gone'",
    redis: [["RPUSH", "{busy}:queue", "gone"]],
  },
  {
    rule: "lease_of_ended_run",
    postgres:
      "INSERT INTO turns (owner, thread_id, tenant, due, run_id) SELECT owner, id, '[]', 0, 'f1' FROM threads WHERE id = 'free'",
    redis: [["HSET", "{free}:lease", "run", "f1", "epoch", "1", "attempt", "1", "seq", "5"]],
  },
  {
    rule: "run_without_turn",
    sql: "UPDATE runs SET place = NULL WHERE id = 'b2'",
    redis: [["DEL", "{busy}:queue"]],
  },
  {
    rule: "run_without_request",
    sql: "UPDATE runs SET request = NULL WHERE id = 'b2'",
    redis: [["HDEL", "{busy}:requests", "b2"]],
  },
  {
    rule: "work_that_no_one_finds",
    postgres: "DELETE FROM turns WHERE thread_id = 'busy'",
    redis: [
      ["EVAL", "for _, k in ipairs(redis.call('KEYS', 'sk:{due}:*')) do redis.call('DEL', k) end", "0"],
    ],
  },
  { rule: "unlisted_thread", redis: [["DEL", "sk:{owners}"]] },
  {
    rule: "wrong_count",
    sql: "UPDATE threads SET message_count = message_count + 1 WHERE id = 'free'",
    redis: [["RPOP", "{free}:messages"]],
  },
  {
    rule: "wrong_count",
    sql: "UPDATE threads SET bytes = 7 WHERE id = 'free'",
    redis: [["HSET", "{free}:meta", "bytes", "7"]],
  },
  {
    rule: "hole_in_messages",
    sqlite:
      "DELETE FROM messages WHERE thread_id = 'busy' AND position = 1; UPDATE messages SET position = 9 WHERE thread_id = 'asks' AND position = 2",
  },
  {
    rule: "call_without_message",
    sqlite: "DELETE FROM messages WHERE id = 'm_1'",
    postgres: `DELETE FROM messages WHERE id = '"m_1"'`,
    redis: [["RPOP", "{asks}:messages"]],
  },
  {
    rule: "call_without_result",
    sql: "UPDATE deferred_calls SET state = 'delivered'",
    redis: [
      [
        "EVAL",
        "local text = redis.call('HGET', KEYS[1], 'c1'); redis.call('HSET', KEYS[1], 'c1', (string.gsub(text, '^accepted', 'delivered')))",
        "1",
        "{asks}:deferred",
      ],
    ],
  },
  {
    rule: "question_without_event",
    sql: "UPDATE events SET event = 'warning' WHERE event = 'on_interrupt'",
    redis: [
      [
        "EVAL",
        "local text = redis.call('HGET', KEYS[1], '10:interrupts/approval_c1'); redis.call('HSET', KEYS[1], '10:interrupts/other', (string.gsub(text, 'approval_c1', 'other')))",
        "1",
        "{asks}:patches",
      ],
    ],
  },
  {
    rule: "message_left_for_ended_run",
    sql: "INSERT INTO inbox (owner, thread_id, run_id, number, id, body) SELECT owner, thread_id, id, 1, 'x', '{}' FROM runs WHERE id = 'f1'",
  },
  {
    rule: "hole_in_log",
    sql: "DELETE FROM events WHERE run_id = 'b1' AND last_seq = 1; DELETE FROM events WHERE run_id = 'f1' AND last_seq = 4",
    redis: [["XDEL", "{free}:events:f1", "1-4"]],
  },
  {
    rule: "event_twice",
    sql: "UPDATE events SET last_seq = 2 WHERE run_id = 'f1' AND last_seq = 3",
    redis: [["XADD", "{free}:events:f1", "2-5", "n", "2", "d", "warning\n{}\n{}"]],
  },
  {
    rule: "event_twice",
    sql: "UPDATE events SET epoch = 2 WHERE run_id = 'f1' AND last_seq = 3",
  },
  {
    rule: "log_and_head_differ",
    sql: "UPDATE runs SET last_seq = 2 WHERE id = 'f1'",
    redis: [["HSET", "{busy}:lease", "seq", "1"]],
  },
  {
    rule: "log_and_head_differ",
    sql: "DELETE FROM events WHERE run_id = 'f1'",
    redis: [["DEL", "{free}:events:f1"]],
  },
  {
    rule: "end_and_log_differ",
    sql: "DELETE FROM events WHERE run_id = 'f1' AND event = 'done'",
    redis: [["XDEL", "{free}:events:f1", "1-5"]],
  },
  {
    rule: "late_document",
    sql: `UPDATE documents SET due = ${LATE} WHERE collection = '["sandboxes"]'`,
    redis: [["ZADD", "sk:{sandboxes}:due:records", String(LATE), "box"]],
  },
  { rule: "lost_document", redis: [["HDEL", "sk:{sandboxes}:records", "box"]] },
  {
    rule: "lost_document",
    redis: [
      ["EVAL", MANY_DOCUMENTS, "2", "sk:{sandboxes}:records", "sk:{sandboxes}:due:records"],
      ["HDEL", "sk:{sandboxes}:records", "box"],
    ],
  },
  {
    rule: "document_without_turn",
    sql: `DELETE FROM documents WHERE collection = '["alarms","acme",null]'`,
    redis: [["DEL", "sk:{turns:alarms}:{acme}"]],
  },
  {
    rule: "document_without_turn",
    sql: "DELETE FROM document_turns",
    redis: [["DEL", "sk:{turns:plans}:{acme}"]],
  },
  {
    rule: "document_without_turn",
    sql: `UPDATE document_turns SET at = at + ${2 * TURN_MS}`,
    redis: [["ZINCRBY", "sk:{turns:plans}:{acme}", String(2 * TURN_MS), '["acme","box"]']],
  },
  {
    rule: "wrong_sum",
    usage: "UPDATE stored_sums SET bytes = bytes + 1",
    postgres: "UPDATE stored_sums SET bytes = bytes + 1",
    redis: [["HINCRBY", "{tenant}:stored", "sum:", "1"]],
  },
  {
    rule: "broken_database",
    sqlite: "PRAGMA foreign_keys = OFF; DELETE FROM threads WHERE id = 'free'",
    redis: [["DEL", "{free}:meta"]],
  },
];

/** A filled store that no process has open. */
interface Filled {
  readonly place: StorePlace;
  damage(how: Damage): Promise<void>;
  /** Everything in the store, as it lies there. */
  bytes(): Promise<unknown>;
}

/** Fills a store once. The returned function gives each test what was filled, undamaged. */
type Filling = () => Promise<() => Promise<Filled>>;

const original = mkdtempSync(join(tmpdir(), "skein-"));
afterAll(() => rmSync(original, { recursive: true }));

const fillSqlite: Filling = async () => {
  const stores = createSqliteStores({ dataDir: original });
  await fill(stores);
  await stores.close();
  return async () => {
    const dir = mkdtempSync(join(tmpdir(), "skein-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    cpSync(original, dir, { recursive: true });
    const run = (name: string, sql: string) => {
      const file = new DatabaseSync(join(dir, name));
      file.exec(sql);
      file.close();
    };
    return {
      place: { sqlite: dir },
      async damage({ sql, sqlite = sql, usage }) {
        if (sqlite) run("skein.db", sqlite);
        if (usage) run("usage.db", usage);
      },
      bytes: async () => filesIn(dir),
    };
  };
};

const filesIn = (dir: string) =>
  readdirSync(dir).map((name) => [
    name,
    createHash("sha256")
      .update(readFileSync(join(dir, name)))
      .digest("hex"),
  ]);

let databases = 0;
const newDatabase = () => databases++;

const EACH_VALUE = `local lines = {}
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local value = redis.sha1hex(redis.call('DUMP', key))
    table.insert(lines, table.concat({key, value, redis.call('EXPIRETIME', key)}, ' '))
  end
  return lines`;
const COPY_DATABASE =
  "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', ARGV[1]) end";

const fillRedis: Filling = async () => {
  if (!redis) throw new Error("There is no Redis.");
  const { url, ask: askAny } = redis;
  const original = newDatabase();
  const stores = await createRedisStores({ url: `${url}/${original}` });
  await fill(stores);
  await stores.close();
  const filled = askAny("-n", `${original}`, "KEYS", "*").split("\n");
  const placeOf = (end: string) => filled.find((key) => key.endsWith(end))?.replace(/:\w+$/, "") ?? "";
  const places: Readonly<Record<string, string>> = {
    ...{ asks: placeOf(":asks}:meta"), busy: placeOf(":busy}:meta"), free: placeOf(":free}:meta") },
    tenant: placeOf("}:stored"),
  };
  return async () => {
    const database = newDatabase();
    const ask = (...command: string[]) => askAny("-n", `${database}`, ...command);
    askAny("-n", `${original}`, "EVAL", COPY_DATABASE, "0", `${database}`);
    return {
      place: { redis: `${url}/${database}` },
      async damage({ redis: commands = [] }) {
        for (const command of commands)
          ask(
            ...command.map((word) =>
              word
                .replace(/^\{(\w+)\}/, (whole, name) => places[name] ?? whole)
                .replace(/\{acme\}$/, tenantTag({ tenant: "acme" })),
            ),
          );
      },
      bytes: async () => ask("EVAL", EACH_VALUE, "0").split("\n").sort(),
    };
  };
};

/** Makes a copy of each table beside the others, or puts the rows of these copies back. */
const eachTable = (statements: string) => `
  CREATE SCHEMA IF NOT EXISTS original;
  SET session_replication_role = replica;
  DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'skein' LOOP
      EXECUTE format('${statements}', name);
    END LOOP; END $$`;
const KEEP = eachTable("CREATE TABLE original.%1$I AS TABLE skein.%1$I");
const PUT_BACK = eachTable("DELETE FROM skein.%1$I; INSERT INTO skein.%1$I TABLE original.%1$I");

const fillPostgres: Filling = async () => {
  if (!postgres) throw new Error("There is no PostgreSQL.");
  const url = await postgres.database();
  const stores = await createPostgresStores({ url, pool: 2 });
  await fill(stores);
  await stores.close();
  const ask = (sql: string) => postgres.ask(url, sql);
  await ask(KEEP);
  return async () => {
    await ask(PUT_BACK);
    return {
      place: { postgres: url },
      async damage({ sql, postgres: own = sql }) {
        if (own) await ask(`SET search_path = skein; SET session_replication_role = replica; ${own}`);
      },
      async bytes() {
        const tables = await ask("SELECT tablename FROM pg_tables WHERE schemaname = 'skein' ORDER BY 1");
        return Promise.all(
          tables.map(({ tablename }) =>
            ask(`SELECT xmin::text, ctid::text, * FROM skein.${tablename} ORDER BY ctid`),
          ),
        );
      },
    };
  };
};

const STORES = [
  {
    name: "SQLite",
    fill: fillSqlite,
    has: (each: Damage) => each.sqlite ?? each.usage ?? each.sql,
    program: undefined,
  },
  { name: "Redis", fill: fillRedis, has: (each: Damage) => each.redis, program: "redis-server" },
  {
    name: "PostgreSQL",
    fill: fillPostgres,
    has: (each: Damage) => each.postgres ?? each.sql,
    program: "postgres",
  },
];

for (const store of STORES) {
  const there = { "redis-server": redis, postgres }[store.program ?? ""] ?? (store.program ? undefined : {});
  needing(there, store.program ?? "node").describe(`a check of ${store.name}`, () => {
    let filled: () => Promise<Filled>;
    beforeAll(async () => {
      filled = await store.fill();
    });

    test("finds no contradiction in a correct store, reads all of it, and changes nothing", async () => {
      const { place, bytes } = await filled();
      const before = await bytes();
      const { findings, checked: all } = await checked(place);
      expect(findings).toEqual([]);
      expect(all).toEqual({ threads: 3, runs: 4, messages: 6, events: 6 + 2 + 5 });
      expect(await bytes()).toEqual(before);
    });

    test("finds no contradiction in a store with fifty active runs", async () => {
      const { place } = await filled();
      const stores = await opened(place);
      onTestFinished(() => stores.close());
      let isOver = false;
      const users = Promise.all(
        upTo(50).map(async (n) => {
          for (const round of upTo(2)) await runOnce(stores, `u${n}`, round);
        }),
      ).finally(() => (isOver = true));
      do expect(await contradictionsIn(place)).toEqual([]);
      while (!isOver);
      await users;
      expect(await contradictionsIn(place)).toEqual([]);
    });

    test("reads messages of any content", async () => {
      const { place } = await filled();
      const stores = await opened(place);
      const { lease } = await claimed(stores, "odd");
      const call = { id: "call_\0", name: "echo", args: { half: "\ud83d" } };
      const asks = assistantMessage("\0 and \ud83d", call);
      await stores.events.append(lease, [{ event: "on_message", data: { message: asks } }]);
      await stores.close();
      expect(await contradictionsIn(place)).toEqual([]);
    });

    test.each(DAMAGES.filter(store.has).map((each) => [each.rule, store.has(each), each] as const))(
      "reports %s after %j",
      async (rule, _, how) => {
        const { place, damage } = await filled();
        await damage(how);
        const { findings } = await checked(place);
        expect(findings.map((each) => each.rule)).toContain(rule);
      },
    );
  });
}

needing(redis, "redis-server").test("a check of Redis requires only the right to read", async () => {
  if (!redis) throw new Error("There is no Redis.");
  const place = `${redis.url}/${newDatabase()}`;
  const stores = await createRedisStores({ url: place });
  await fill(stores);
  await stores.close();
  redis.ask("ACL", "SETUSER", "reader", "on", ">pass", "~sk:*", "&*", "-@all", "+@read", "+@connection");
  const url = place.replace("redis://", "redis://reader:pass@");
  expect((await checked({ redis: url })).findings).toEqual([]);
});

describe("a check next to a server", () => {
  test("reads the database of a writing process as it is at one moment", async () => {
    const dir = mkdtempSync(join(tmpdir(), "skein-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const stores = createSqliteStores({ dataDir: dir });
    onTestFinished(() => stores.close());
    const { lease } = await claimed(stores, "t");
    let isOver = false;
    const writing = (async () => {
      for (let each = 0; !isOver; each++) await stores.events.append(lease, [message(`${each}`), delta("x")]);
    })();
    for (let each = 0; each < 5; each++) expect(await contradictionsIn({ sqlite: dir })).toEqual([]);
    isOver = true;
    await writing;
  });
});
