// Lists of an owner with many threads, and a thread of many messages: others are served while one is searched or created, and no
// thread is listed twice or left out.

import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { Thread } from "../../../src/agent/core/records.ts";
import type { ThreadQuery, ThreadStore } from "../../../src/agent/core/stores.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { ADA, inWorld } from "./fixture.ts";
import { temporaryDatabase } from "./sqlite-file.ts";

const { dataDir, inFile } = temporaryDatabase();

const MANY = 50_000;

/** Newer than the one that is there, and of another title. */
function addThreads(count: number): void {
  inFile((file) => {
    file.exec("CREATE TEMP TABLE copy AS SELECT * FROM threads");
    file.exec("UPDATE copy SET title = 'x', title_folded = 'x', updated_at = updated_at + 1");
    const rename = file.prepare("UPDATE copy SET id = ?");
    const add = file.prepare("INSERT INTO threads SELECT * FROM copy");
    file.exec("BEGIN");
    for (let n = 0; n < count; n++) {
      rename.run(`t${n}`);
      add.run();
    }
    file.exec("COMMIT");
  });
}

/** How many ticks of the event loop others have before `work` ends. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let isOver = false;
  const end = work.finally(() => {
    isOver = true;
  });
  let turns = 0;
  for (; !isOver; await nextTurn()) turns++;
  await end;
  return turns;
}

test("others are served during a search of many threads, and the oldest is found", async () => {
  const first = createSqliteStores({ dataDir: dataDir() });
  await first.threads.create(ADA, { id: "oldest", title: "The first plan", metadata: {} });
  await first.close();
  addThreads(MANY);
  await inWorld(
    async () => createSqliteStores({ dataDir: dataDir() }),
    async ({ stores: { threads } }) => {
      const found = threads.list(ADA, { limit: 3, q: "plan" });
      expect(await turnsDuring(found)).toBeGreaterThan(1);
      expect((await found).items.map(({ id }) => id)).toEqual(["oldest"]);
      expect(await threads.list(ADA, { limit: 3, agent: "unknown" })).toEqual({ items: [] });
    },
  );
});

test("others are served while a thread is created with many messages", () =>
  inWorld(
    async (options) => createMemoryStores(options),
    async ({ stores: { threads } }) => {
      const messages = Array.from({ length: 1_000 }, (_, n) => userMessage(`${n}`));
      const created = threads.create(ADA, { id: "long", metadata: {}, messages });
      expect(await turnsDuring(created)).toBeGreaterThan(5);
      expect(await threads.messages(ADA, "long")).toEqual(messages);
    },
  ));

const IDS = ["a", "b", "c", "d", "e", "f"];
type Step = {
  readonly kind: "create" | "update" | "delete" | "wait";
  readonly id: string;
  readonly parent: string;
};

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("create", "update", "delete", "wait"),
  id: fc.constantFrom(...IDS),
  parent: fc.constantFrom("", "a", "b"),
});

test("lists contain each thread once, in order of last change, after any changes", () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (steps, limit) =>
      inWorld(
        async (options) => createMemoryStores(options),
        async ({ stores: { threads }, advance }) => {
          for (const each of steps) {
            if (each.kind === "wait") advance(1000);
            else await take(threads, each);
          }
          const found = await Promise.all(IDS.map((id) => threads.get(ADA, id)));
          const there = found.filter((thread) => thread !== undefined);
          const expected = (parent?: string) =>
            there
              .filter((thread) => thread.parent?.thread_id === parent)
              .sort((x, y) => (`${x.updated_at}${x.id}` < `${y.updated_at}${y.id}` ? 1 : -1));
          expect(await all(threads, { limit })).toEqual(expected());
          for (const parent of ["a", "b"])
            expect(await all(threads, { limit, parent })).toEqual(expected(parent));
          expect((await all(threads, { limit, children: true })).length).toBe(there.length);
        },
      ),
    ),
  ));

async function take(threads: ThreadStore, { kind, id, parent }: Step): Promise<void> {
  if (kind === "update") await threads.update(ADA, id, { title: "changed" });
  else if (kind === "delete") await threads.delete(ADA, id);
  else if (!(await threads.get(ADA, id)))
    await threads.create(ADA, {
      ...{ id, metadata: {} },
      ...(parent && { parent: { thread_id: parent, run_id: "run_1", call_id: "call_1", background: false } }),
    });
}

async function all(threads: ThreadStore, query: ThreadQuery): Promise<Thread[]> {
  const { items, next_cursor: cursor } = await threads.list(ADA, query);
  return cursor === undefined ? items : [...items, ...(await all(threads, { ...query, cursor }))];
}
