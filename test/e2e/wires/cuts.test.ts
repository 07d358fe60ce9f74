// Clients that come back after a cut, each time at the other replica: all words once, and one run.

import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";
import OpenAI from "openai";
import { afterAll, expect } from "vitest";
import { createClient } from "../../../src/client/client.ts";
import { type Cut, onReplicas } from "../../support/deployments.ts";
import { needing } from "../../support/needing.ts";
import { sharedRedis } from "../../support/shared-stores.ts";

const redis = await sharedRedis();
afterAll(() => redis?.close());

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
const CUTS: readonly Cut[] = ["reset", "end"];

async function started() {
  if (!redis) throw new Error("There is no Redis.");
  const server = await deploy({ script: [{ say: WORDS, delay_ms: 10 }] });
  const runs = async () => {
    const { items } = (await (await fetch(`${server.url}/threads`)).json()) as { items: { id: string }[] };
    const all = items.map(async ({ id }) => {
      const page = (await (await fetch(`${server.url}/threads/${id}/runs`)).json()) as {
        items: { status: string }[];
      };
      return page.items.map(({ status }) => status);
    });
    return (await Promise.all(all)).flat();
  };
  return { ...server, runs };
}
const deploy = redis ? onReplicas(redis) : () => Promise.reject(new Error("There is no Redis."));

const { describe, test } = needing(redis, "redis-server");

for (const how of CUTS) {
  const manner = how === "reset" ? "breaks" : "ends early";
  describe(`a stream that ${manner}`, () => {
    test("is continued by the native client", async () => {
      const { url, cut, cuts, runs } = await started();
      cut(how, { number: 5, bytes: 1500 });
      let text = "";
      for await (const event of createClient({ baseUrl: url }).run("t1", { input: "go" }))
        if (event.event === "on_chat_model_stream" && "delta" in event.data) text += event.data.delta;
      expect(text).toBe(WORDS);
      expect(cuts()).toBeGreaterThan(1);
      expect(await runs()).toEqual(["success"]);
    });

    test("is continued by OpenAI's SDK after the last event that arrived", async () => {
      const { url, cut, cuts, runs } = await started();
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused" });
      cut(how, { number: 5, bytes: 3000 });
      const seen: OpenAI.Responses.ResponseStreamEvent[] = [];
      const read = async (stream: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) => {
        try {
          for await (const event of stream) seen.push(event);
        } catch (error) {
          // A reset, or a frame that was cut in half.
          expect(error).toBeInstanceOf(Error);
        }
      };
      const request = { model: "assistant", input: "go", background: true, stream: true } as const;
      await read(await client.responses.create(request));
      const id = seen[0]?.type === "response.created" ? seen[0].response.id : "";
      while (seen.at(-1)?.type !== "response.completed") {
        const starting_after = seen.at(-1)?.sequence_number ?? 0;
        await read(await client.responses.retrieve(id, { stream: true, starting_after }));
      }
      expect(seen.map((each) => each.sequence_number)).toEqual(seen.map((_, index) => index));
      const text = seen.flatMap((each) => (each.type === "response.output_text.delta" ? [each.delta] : []));
      expect(text.join("")).toBe(WORDS);
      expect(cuts()).toBeGreaterThan(1);
      expect(await runs()).toEqual(["success"]);
    });

    test("is read from its beginning by a page with useChat that is opened again", async () => {
      const { url, cut, cuts, runs } = await started();
      const api = `${url}/ai-sdk/assistant/chat`;
      const open = (messages: UIMessage[]) =>
        new Chat({ id: "c1", messages, transport: new DefaultChatTransport({ api }) });
      const chat = open([]);
      cut(how, { number: 1, bytes: 1500 });
      await chat.sendMessage({ text: "go" });
      expect(cuts()).toBe(1);
      // A stream that ends early looks whole to this client.
      expect(chat.status).toBe(how === "reset" ? "error" : "ready");
      const again = open((await (await fetch(`${api}/c1/messages`)).json()) as UIMessage[]);
      await again.resumeStream();
      const parts = again.lastMessage?.parts ?? [];
      expect(parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")).toBe(WORDS);
      expect(await runs()).toEqual(["success"]);
    });
  });
}
