import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Message, userMessage } from "../../../src/agent/core/message.ts";
import type { ThreadStore } from "../../../src/agent/core/stores.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { messagesAnswer, stateAnswer } from "../../../src/server/http/message-responses.ts";
import { startServer } from "../../support/server.ts";

const OWNER = { tenant: "t", user: "u" };
const MiB = 1024 * 1024;

/** A thread of `count` messages of a mebibyte, and what was read of it. */
async function fatThread(count: number) {
  const stores = createMemoryStores({});
  onTestFinished(() => stores.close());
  const messages = Array.from({ length: count }, () => userMessage("é".repeat(MiB / 2)));
  await stores.threads.create(OWNER, { id: "fat", metadata: {}, messages });
  let read = 0;
  const threads: Pick<ThreadStore, "messagePage"> = {
    async messagePage(...asked) {
      const page = await stores.threads.messagePage(...asked);
      for (const text of page.texts) read += Buffer.byteLength(text);
      return page;
    },
  };
  const toJson = (message: Message) => JSON.stringify(message);
  const source = { threads, toJson, owner: OWNER, id: "fat", open: () => () => {} };
  return { source, messages, bytesRead: () => read };
}

async function textOf(answer: string | Readable): Promise<string> {
  if (typeof answer === "string") return answer;
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

describe("a response with the messages of a large thread", () => {
  test("reads only one page ahead of its reader from the store", async () => {
    const { source, messages, bytesRead } = await fatThread(12);
    const answer = (await stateAnswer(source, async () => ({ status: "idle" }))) as Readable;
    const reader = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    let seen = 0;
    for (let pieces = 0; pieces < 10; pieces++) seen += (await reader.next()).value.length;
    for (let turns = 0; turns < 100; turns++) await nextTurn();
    expect(bytesRead()).toBeLessThan(seen + 3 * MiB);
    answer.destroy();
    const whole = JSON.parse(await textOf(await stateAnswer(source, async () => ({ status: "idle" }))));
    expect(whole).toEqual({ messages, status: "idle" });
  });

  test("is divided into pages of limited bytes, each with the cursor of the next", async () => {
    const { source, messages } = await fatThread(20);
    const seen: Message[] = [];
    let pages = 0;
    for (let after: string | undefined; ; ) {
      const page = JSON.parse(await textOf(await messagesAnswer(source, { after, limit: 1000 })));
      seen.push(...page.items);
      pages++;
      after = page.next_cursor;
      if (after === undefined) break;
    }
    expect(pages).toBe(3);
    expect(seen).toEqual(messages);
  });
});

test("has a small thread's messages on one page without a cursor, and a limited page with one", async () => {
  const { url } = await startServer();
  await fetch(`${url}/threads/t/runs`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ input: "hi" }),
  }).then((reply) => reply.text());
  const read = async (query: string) => {
    const reply = await fetch(`${url}/threads/t/messages${query}`);
    expect(reply.headers.get("content-type")).toBe("application/json; charset=utf-8");
    return (await reply.json()) as { items: Message[]; next_cursor?: string };
  };
  const all = await read("");
  expect(all.items.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(all).not.toHaveProperty("next_cursor");
  const first = await read("?limit=1");
  expect(first).toEqual({ items: all.items.slice(0, 1), next_cursor: all.items[0]?.id });
  expect(await read(`?after=${first.next_cursor}`)).toEqual({ items: all.items.slice(1) });
});
