// What every ThreadStore promises of threads that begin with something.

import { describe, expect, test } from "vitest";
import { assistantMessage, type Message, userMessage } from "../../src/agent/core/message.ts";
import {
  ADA,
  claimed,
  done,
  inWorld,
  message,
  type Open,
  patch,
  ruleTest,
  said,
  state,
  upTo,
} from "../engine/stores/fixture.ts";

export function beginningContract(open: Open): void {
  const rule = ruleTest(open);
  describe("threads with initial messages", () => {
    test("have them from the start and continue from there", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, events } = stores;
        const messages = [userMessage("one"), assistantMessage("two"), userMessage("three")];
        const slots = { todos: ["a"], files: { "a.txt": 1 }, title: null };
        const created = await threads.create(ADA, {
          ...{ id: "t", title: "Fork", metadata: { a: 1 }, messages, state: slots },
        });
        expect(created).toEqual({
          ...{ id: "t", title: "Fork", metadata: { a: 1 }, status: "idle", message_count: 3 },
          ...{ created_at: "2026-11-21T10:00:00.000Z", updated_at: "2026-11-21T10:00:00.000Z" },
        });
        expect(await threads.get(ADA, "t")).toEqual(created);
        expect(await threads.messages(ADA, "t")).toEqual(messages);
        expect(await threads.messages(ADA, "t", { after: messages[0]?.id ?? "", limit: 1 })).toEqual([
          messages[1],
        ]);
        expect(await threads.state(ADA, "t")).toEqual(slots);

        const { lease } = await claimed(stores, "t");
        const next = userMessage("four");
        // A message that it began with is not taken in again.
        const again = said({ ...userMessage("changed"), id: messages[0]?.id ?? "" });
        await events.append(lease, [again, said(next), patch("files", { "b.txt": 2 }), done()]);
        expect(await threads.messages(ADA, "t")).toEqual([...messages, next]);
        expect(await threads.state(ADA, "t")).toEqual({ ...slots, files: { "a.txt": 1, "b.txt": 2 } });
        expect((await threads.get(ADA, "t"))?.message_count).toBe(4);
        expect(await threads.clear(ADA, "t")).toBe(true);
        expect(await threads.messages(ADA, "t")).toEqual([]);
        expect(await threads.state(ADA, "t")).toEqual({});
      }));

    rule("have an agent before their first run if one is given", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const created = await threads.create(ADA, { id: "t", agent: "coder", metadata: {} });
        expect(created).toMatchObject({ agent: "coder" });
        expect(await threads.get(ADA, "t")).toEqual(created);
        expect((await threads.list(ADA, { limit: 10, agent: "coder" })).items).toEqual([created]);
      }),
    );

    rule("contain a message once even if it is given twice", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const [one, two] = [userMessage("one"), userMessage("two")];
        const messages = [one, two, { ...userMessage("again"), id: one.id }];
        expect(await threads.create(ADA, { id: "t", metadata: {}, messages })).toMatchObject({
          message_count: 2,
        });
        expect(await threads.messages(ADA, "t")).toEqual([one, two]);
      }),
    );

    test("keep copies of messages with any content", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const args = JSON.parse('{"__proto__":{"a":1},"constructor":null,"text":"\\u0000\\ud800","n":1e300}');
        const messages: Message[] = [assistantMessage("é😀", { id: "c", name: "f", args })];
        const slots = JSON.parse('{"__proto__":{"polluted":true},"":["a"],"files":{"a\\nb":null}}');
        const before = JSON.stringify([messages, slots]);
        await threads.create(ADA, { id: "t", metadata: {}, messages, state: slots });
        if (messages[0]) messages[0].content = "changed";
        messages.pop();
        slots[""].push("changed");
        const kept = await threads.state(ADA, "t");
        expect(Object.keys(kept).sort()).toEqual(["", "__proto__", "files"]);
        const [keptMessages, keptSlots] = JSON.parse(before);
        expect(JSON.stringify(await threads.messages(ADA, "t"))).toBe(JSON.stringify(keptMessages));
        for (const key of Object.keys(keptSlots))
          expect(JSON.stringify(kept[key])).toBe(JSON.stringify(keptSlots[key]));
        expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
      }));

    test("are complete for one of several simultaneous creators, without the others' messages", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const tries = upTo(20).map((n) => {
          const messages = upTo(n).map((each) => userMessage(`${n}: ${each}`));
          const parent = { thread_id: `p${n}`, run_id: "run_1", call_id: "call_1", background: true };
          const news = { id: "t", title: `${n}`, metadata: { n }, parent, messages, state: { [`s${n}`]: n } };
          return threads.create(ADA, news);
        });
        const results = await Promise.allSettled(tries);
        const created = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
        for (const result of results)
          if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "already_exists" });
        expect(created).toHaveLength(1);
        const n = Number(created[0]?.title);
        expect(created[0]).toMatchObject({
          metadata: { n },
          parent: { thread_id: `p${n}`, run_id: "run_1", call_id: "call_1", background: true },
          message_count: n,
        });
        expect(await threads.get(ADA, "t")).toEqual(created[0]);
        const texts = (await threads.messages(ADA, "t")).map(({ content }) => content);
        expect(texts).toEqual(upTo(n).map((each) => `${n}: ${each}`));
        expect(await threads.state(ADA, "t")).toEqual({ [`s${n}`]: n });
      }));

    rule("do not change an existing thread", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const { lease } = await claimed(stores, "t");
        await stores.events.append(lease, [message("mine"), state("todos", ["mine"]), done()]);
        const look = async () => [
          ...[await threads.get(ADA, "t"), await threads.messages(ADA, "t")],
          await threads.state(ADA, "t"),
        ];
        const before = await look();
        const more = { messages: [userMessage("other")], state: { todos: ["other"], more: 1 } };
        await expect(
          threads.create(ADA, { id: "t", title: "x", metadata: {}, ...more }),
        ).rejects.toMatchObject({
          code: "already_exists",
        });
        expect(await look()).toEqual(before);
      }),
    );

    test("can begin with any number of messages", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const messages = upTo(2000).map((n) => userMessage(`message ${n}`));
        await threads.create(ADA, { id: "t", metadata: {}, messages });
        expect((await threads.get(ADA, "t"))?.message_count).toBe(2000);
        expect(await threads.messages(ADA, "t", { after: messages[1998]?.id ?? "" })).toEqual([
          messages[1999],
        ]);
      }));
  });
}
