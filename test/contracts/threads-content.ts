// What a thread holds: messages, in their order and in pages, and the slots of its state.

import { describe, expect, test } from "vitest";
import { userMessage } from "../../src/agent/core/message.ts";
import {
  ADA,
  claimed,
  done,
  inWorld,
  message,
  type Open,
  patch,
  ruleTest,
  state,
} from "../engine/stores/fixture.ts";

export function threadContentContract(open: Open): void {
  const rule = ruleTest(open);
  describe("threads", () => {
    rule("return messages that no reader can change, at any depth", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const parts = [{ type: "text" as const, text: "hello" }];
        const all = [
          { id: "m1", role: "user" as const, content: parts, created_at: "2026-11-21T10:00:00.000Z" },
        ];
        await threads.create(ADA, { id: "t", metadata: {}, messages: all });
        await threads.fork(ADA, "t", { id: "fork", metadata: {} });
        const { lease } = await claimed(stores, "t");
        const again = { event: "on_message" as const, data: { message: userMessage(parts) } };
        await stores.events.append(lease, [again, done()]);
        for (const id of ["t", "fork"])
          for (const read of await threads.messages(ADA, id)) {
            const [part] = read.content;
            expect(() => Object.assign(read, { content: "changed" })).toThrow(TypeError);
            expect(() => Object.assign(Object(part), { text: "changed" })).toThrow(TypeError);
          }
        // A list is its reader's own.
        (await threads.messages(ADA, "t")).pop();
        expect((await threads.messages(ADA, "t")).map(({ content }) => content)).toEqual([parts, parts]);
      }),
    );

    test("return their messages oldest first, from any position", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const events = ["a", "b", "c", "d"].map(message);
        const ids = events.map(({ data }) => data.message.id);
        for (const event of events) await stores.events.append(lease, [event]);
        const read = async (window?: { after?: string; limit?: number }) =>
          (await stores.threads.messages(ADA, "t", window)).map(({ id }) => id);
        expect(await stores.threads.messages(ADA, "t")).toEqual(events.map(({ data }) => data.message));
        expect(await read({ limit: 3 })).toEqual(ids.slice(0, 3));
        expect(await read({ after: ids[1] ?? "" })).toEqual(ids.slice(2));
        expect(await read({ after: ids[0] ?? "", limit: 2 })).toEqual(ids.slice(1, 3));
        expect(await read({ after: ids[3] ?? "" })).toEqual([]);
        await expect(read({ after: "msg_unknown" })).rejects.toMatchObject({ code: "not_found" });
        expect(await stores.threads.messages(ADA, "unknown")).toEqual([]);
      }));

    test("return their messages in pages of limited bytes, with at least one message each", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const events = ["a", "b".repeat(5000), "c", "d", "e"].map(message);
        await stores.events.append(lease, events);
        const texts = events.map(({ data }) => JSON.stringify(data.message));
        const ids = events.map(({ data }) => data.message.id);
        const page = (window: { after?: string; limit?: number; bytes: number }) =>
          stores.threads.messagePage(ADA, "t", window);
        const bytes = Buffer.byteLength(texts[2] ?? "") * 2;
        expect(await page({ bytes })).toEqual({ texts: texts.slice(0, 1), isLast: false });
        expect(await page({ bytes, after: ids[0] ?? "" })).toEqual({ texts: [texts[1]], isLast: false });
        expect(await page({ bytes, after: ids[1] ?? "" })).toEqual({
          texts: texts.slice(2, 4),
          isLast: false,
        });
        expect(await page({ bytes, after: ids[3] ?? "" })).toEqual({ texts: texts.slice(4), isLast: true });
        expect(await page({ bytes, after: ids[4] ?? "" })).toEqual({ texts: [], isLast: true });
        expect(await page({ bytes: 1 })).toEqual({ texts: texts.slice(0, 1), isLast: false });
        expect(await page({ bytes: 1e6, limit: 2 })).toEqual({ texts: texts.slice(0, 2), isLast: false });
        expect(await page({ bytes: 1e6 })).toEqual({ texts, isLast: true });
        await expect(page({ bytes, after: "msg_unknown" })).rejects.toMatchObject({ code: "not_found" });
        expect(await stores.threads.messagePage(ADA, "unknown", { bytes })).toEqual({
          texts: [],
          isLast: true,
        });
      }));

    test("keep messages and values with any content", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const args = JSON.parse(
          '{"__proto__":{"a":1},"constructor":null,"text":"\\u0000\\ud800 \\u2028\\n\'\\"","n":1e300}',
        );
        const sent = {
          id: "msg_x",
          created_at: "2026-11-21T10:00:00.000Z",
          role: "assistant" as const,
          content: "é😀\u0000",
          tool_calls: [{ id: "call", name: "f", args }],
        };
        await stores.events.append(lease, [
          { event: "on_message", data: { message: sent } },
          state("__proto__", { polluted: true }),
          state("files", { "a\nb": null, nested: args }),
        ]);
        const [kept] = await stores.threads.messages(ADA, "t");
        expect(JSON.stringify(kept)).toBe(JSON.stringify(sent));
        const slots = await stores.threads.state(ADA, "t");
        expect(Object.keys(slots).sort()).toEqual(["__proto__", "files"]);
        expect(JSON.stringify(slots.files)).toBe(JSON.stringify({ "a\nb": null, nested: args }));
        expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
      }));

    rule("keep their state in slots that can be replaced, merged key by key, and removed", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const slots = async () => stores.threads.state(ADA, "t");
        expect(await slots()).toEqual({});
        await stores.events.append(lease, [
          state("todos", ["a"]),
          patch("files", { "a.txt": { bytes: 1 }, "b.txt": 2 }),
        ]);
        expect(await slots()).toEqual({ todos: ["a"], files: { "a.txt": { bytes: 1 }, "b.txt": 2 } });
        await stores.events.append(lease, [
          patch("files", { "a.txt": null, "c.txt": { bytes: 3 } }),
          state("todos", []),
        ]);
        expect(await slots()).toEqual({ todos: [], files: { "b.txt": 2, "c.txt": { bytes: 3 } } });
        await stores.events.append(lease, [state("todos", undefined), state("title", null), done()]);
        expect(await slots()).toEqual({ title: null, files: { "b.txt": 2, "c.txt": { bytes: 3 } } });
      }),
    );

    test("can have any number of messages", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const many = Array.from({ length: 2000 }, (_, n) => message(`message ${n}`));
        await stores.events.append(lease, many);
        expect((await stores.threads.get(ADA, "t"))?.message_count).toBe(2000);
        const [last] = await stores.threads.messages(ADA, "t", { after: many[1998]?.data.message.id ?? "" });
        expect(last?.content).toBe("message 1999");
      }));
  });
}
