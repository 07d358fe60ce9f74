// What is promised of the requests to models that are kept beside a thread, on every store.

import { describe, expect, test } from "vitest";
import { type Message, userMessage } from "../../src/agent/core/message.ts";
import type { ModelRequest } from "../../src/agent/core/model.ts";
import { newMessageId } from "../../src/agent/core/new-ids.ts";
import type { RunKey } from "../../src/agent/core/stores.ts";
import { scriptedModel } from "../../src/agent/models/scripted.ts";
import { createSentRequests } from "../../src/engine/runs/sent-requests.ts";
import { ADA, BOB, inWorld, type Open, upTo } from "../engine/stores/fixture.ts";

const RUN: RunKey = { owner: ADA, thread_id: "t", run_id: "run_1" };
const model = scriptedModel([{ say: "ok" }], "scripted:test");

const requestOf = (text: string, messages: readonly Message[] = []): ModelRequest => ({
  ...{ model, messages, tools: [], settings: { max_tokens: 5 }, signal: new AbortController().signal },
  system: [{ id: "instructions", text, cache: "static" }],
});
const call = (thread: readonly Message[] = []) => ({ id: newMessageId(), thread });

export function sentRequestsContract(open: Open): void {
  const withRequests = (
    body: (world: {
      record(number: number, request: ModelRequest, run?: RunKey): Promise<void>;
      kept(numbers: readonly number[], run?: RunKey): Promise<number[]>;
      requests: ReturnType<typeof createSentRequests>;
      threads: Awaited<ReturnType<Open>>["threads"];
    }) => Promise<void>,
  ) =>
    inWorld(open, async ({ stores: { documents, threads } }) => {
      const requests = createSentRequests(documents);
      await threads.create(ADA, { id: "t", metadata: {} });
      await body({
        requests,
        threads,
        record: (number, request, run = RUN) => requests.record(run, number, request, call()),
        async kept(numbers, run = RUN) {
          const all = await Promise.all(numbers.map((number) => requests.read(run, number)));
          return all.flatMap((found) => (found ? [found.number] : []));
        },
      });
    });

  describe("a recorded model request", () => {
    test("can be read by the number of its call, by the thread's owner", () =>
      withRequests(async ({ requests }) => {
        const [told, changed] = [userMessage("as it is"), userMessage("whole")];
        const messages = [told, { ...changed, content: "shortened" }];
        const info = call([told, changed]);
        await requests.record(RUN, 1, requestOf("Be kind.", messages), info);
        expect(await requests.read(RUN, 1)).toEqual({
          ...{ number: 1, message_id: info.id, sent_at: expect.any(String), model: "scripted:test" },
          ...{ settings: { max_tokens: 5 }, tools: [], is_whole: true },
          system: [{ id: "instructions", cache: "static", text: "Be kind." }],
          messages: [
            { id: told.id, role: "user", in_thread: true },
            { id: changed.id, role: "user", in_thread: false, message: messages[1] },
          ],
        });
        expect(await requests.read(RUN, 2)).toBeUndefined();
        expect(await requests.read({ ...RUN, run_id: "run_2" }, 1)).toBeUndefined();
        expect(await requests.read({ ...RUN, owner: BOB }, 1)).toBeUndefined();
      }));

    test("is replaced by the same call of another attempt", () =>
      withRequests(async ({ requests, record }) => {
        for (const text of ["first", "second"]) await record(1, requestOf(text));
        expect((await requests.read(RUN, 1))?.system).toMatchObject([{ text: "second" }]);
      }));

    test("is kept for a thread's newest hundred calls, up to 4 MiB", () =>
      withRequests(async ({ record, kept }) => {
        const later = { ...RUN, run_id: "run_2" };
        for (const number of upTo(60)) await record(number, requestOf("x"));
        for (const number of upTo(60)) await record(number, requestOf("x"), later);
        expect(await kept(upTo(60))).toEqual(upTo(60, 21));
        expect(await kept(upTo(60), later)).toEqual(upTo(60));
        for (const number of upTo(80, 61)) await record(number, requestOf("x".repeat(250 * 1024)), later);
        expect(await kept(upTo(60))).toEqual([]);
        expect(await kept(upTo(80), later)).toEqual(upTo(80, 65));
      }));

    test("leaves out messages that do not fit, and marks the gap", () =>
      withRequests(async ({ requests }) => {
        const messages = upTo(1200).map((n) => userMessage(`${n}`));
        const huge = { ...userMessage("y".repeat(300 * 1024)) };
        await requests.record(RUN, 1, requestOf("x", [...messages, huge]), call(messages));
        const sent = await requests.read(RUN, 1);
        expect(sent).toMatchObject({ is_whole: false, system: [{ text: "x" }] });
        expect(sent?.messages).toHaveLength(1000);
        expect(sent?.messages.at(-1)).toEqual({ id: huge.id, role: "user", in_thread: false });
      }));

    test.each(["delete", "clear"] as const)("is deleted with its thread: %s", (how) =>
      withRequests(async ({ record, kept, threads }) => {
        await record(1, requestOf("x"));
        await threads[how](ADA, "t");
        expect(await kept([1])).toEqual([]);
        if (how === "delete") await record(1, requestOf("late"));
        expect(await kept([1])).toEqual([]);
        if (how === "delete") expect(await threads.get(ADA, "t")).toBeUndefined();
      }),
    );
  });
}
