// The folds of the wires alone: a stock client can read every run.

import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from "ai";
import fc from "fast-check";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { describe, expect, test } from "vitest";
import { checkGrammar } from "../../../src/core/grammar.ts";
import { type Message, userMessage } from "../../../src/core/message.ts";
import { project } from "../../../src/http/wires/ai-sdk/project.ts";
import { align, messageOf, readDataUrl, threadIdOf } from "../../../src/http/wires/messages.ts";
import { project as chatChunks } from "../../../src/http/wires/openai/project.ts";
import { arbitraryRun, RUN } from "../../support/arbitrary-run.ts";

test("the runs of these properties are legal", () => {
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      expect(checkGrammar(events)).toEqual([]);
    }),
  );
});

describe("the AI SDK's chunks of any run", () => {
  const chunksOf = (events: Parameters<ReturnType<typeof project>>[0][], version: 5 | 6 | 7 = 7) => {
    const fold = project({ messageId: "a_msg", version });
    const data = events.flatMap((event) => fold(event, RUN)).map((frame) => frame.data);
    expect(data.indexOf("[DONE]")).toBe(data.length - 1);
    return data.slice(0, -1).map((each) => JSON.parse(each) as UIMessageChunk);
  };

  test("fit the client's own schema, and it reads them to their end", async () => {
    const schema = uiMessageChunkSchema();
    await fc.assert(
      fc.asyncProperty(arbitraryRun, async (events) => {
        const chunks = chunksOf(events);
        for (const chunk of chunks) expect(await schema.validate?.(chunk)).toMatchObject({ success: true });
        const stream = ReadableStream.from(chunks.filter(({ type }) => type !== "error"));
        let last: UIMessage | undefined;
        for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
        expect(last?.id).toBe("a_msg");
        const isOpen = ({ state }: { state?: string }) =>
          state === "streaming" || state === "input-streaming";
        expect(last?.parts.filter((part) => isOpen(part as { state?: string }))).toEqual([]);
      }),
    );
  });

  test.each([5, 6] as const)("hold nothing that version %s does not know", (version) => {
    const NEWER = ["reset-step", "steering-message", "custom", "tool-approval-response"];
    const newer = version === 5 ? [...NEWER, "tool-approval-request", "tool-output-denied"] : NEWER;
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const types = chunksOf(events, version).map(({ type }) => type as string);
        expect(types.filter((type) => newer.includes(type))).toEqual([]);
      }),
    );
  });
});

test("OpenAI's SDK reads the chunks of any run to their end, or to its error", async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryRun, fc.boolean(), async (events, includesUsage) => {
      const fold = chatChunks({ model: "assistant", includesUsage });
      const data = events.flatMap((event) => fold(event, RUN)).map((frame) => frame.data);
      const isFailed = events.at(-1)?.event === "error";
      if (isFailed) {
        expect(JSON.parse(data.at(-1) ?? "")).toMatchObject({ error: { message: "It broke." } });
        return;
      }
      expect(data.indexOf("[DONE]")).toBe(data.length - 1);
      const lines = data.slice(0, -1).map((each) => Buffer.from(`${each}\n`));
      const stream = ChatCompletionStream.fromReadableStream(ReadableStream.from(lines));
      const { choices, usage } = await stream.finalChatCompletion();
      expect(choices[0]?.finish_reason).toEqual(expect.any(String));
      expect(usage !== undefined && usage !== null).toBe(includesUsage);
    }),
  );
});

describe("what a client's list of messages means", () => {
  const thread = (...ids: string[]): Message[] => ids.map((id) => ({ ...userMessage(id), id }));
  const sent = (...ids: string[]) => ids.map((id) => ({ id, content: id }));
  const whole = { isWhole: true, isRegenerated: false };

  test.each([
    ["the first message is new", thread(), sent("a"), { as: "new" }],
    ["one more is new", thread("a"), sent("a", "b"), { as: "new" }],
    ["the newest one again is a repeat", thread("a", "b"), sent("a", "b"), { as: "repeat" }],
    ["an older one again replaces it", thread("a", "b"), sent("a"), { as: "replacement", of: "a" }],
    [
      "one in place of another replaces it",
      thread("a", "b", "c"),
      sent("a", "x"),
      { as: "replacement", of: "b" },
    ],
    ["unknown ids count by their order", thread("a", "b"), sent("x", "y"), { as: "replacement", of: "b" }],
    ["unknown ids, one more than there are, are new", thread("a", "b"), sent("x", "y", "z"), { as: "new" }],
  ] as const)("%s", (_, known, list, alignment) => {
    expect(align(known, list, whole)).toEqual(alignment);
  });

  test("the newest one with other content, or regenerated, replaces it", () => {
    expect(align(thread("a"), [{ id: "a", content: "other" }], whole)).toEqual({
      as: "replacement",
      of: "a",
    });
    expect(align(thread("a"), sent("a"), { ...whole, isRegenerated: true })).toEqual({
      as: "replacement",
      of: "a",
    });
  });

  test("a message alone adds to the thread", () => {
    expect(align(thread("a", "b"), sent("x"), { isWhole: false, isRegenerated: false })).toEqual({
      as: "new",
    });
  });

  test("ids of threads and messages are kept if they may be ours", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 200 }), (id) => {
        expect(threadIdOf(id)).toMatch(/^[A-Za-z0-9_-]{1,128}$/);
        expect(messageOf({ id, content: "x" }).id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(threadIdOf(threadIdOf(id))).toBe(threadIdOf(id));
      }),
    );
    expect(threadIdOf("chat-1")).toBe("chat-1");
    expect(messageOf({ id: "m1", content: "x" }).id).toBe("m1");
  });

  test("only data: URLs are read", () => {
    expect(readDataUrl("data:text/plain;charset=utf-8;base64,aGk=")).toEqual({
      media_type: "text/plain",
      data: "aGk=",
    });
    for (const url of ["https://example.com/a.png", "data:text/plain,hi", "file:///etc/passwd", ""])
      expect(() => readDataUrl(url)).toThrow("Only `data:` URLs");
  });
});
