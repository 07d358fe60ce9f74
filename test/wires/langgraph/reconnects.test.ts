// Streams that LangGraph's own SDK continues after a cut.

import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { all, assembled, said, started } from "./client.ts";

test("a broken stream continues where it was: every word once, one run", async () => {
  const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
  const { url, client: direct } = await started([{ say: words, delay_ms: 5 }]);
  await direct.threads.create({ threadId: "t1" });
  let cuts = 0;
  const asked: string[] = [];
  const client = new Client({
    apiUrl: `${url}/langgraph`,
    apiKey: "",
    callerOptions: {
      fetch: async (input: string | URL | Request, init?: RequestInit) => {
        asked.push(`${init?.method} ${new URL(String(input)).pathname}`);
        const response = await fetch(input, init);
        if (!response.body || !String(input).includes("/stream") || cuts >= 2) return response;
        cuts++;
        let frames = 0;
        const cut = new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            controller.enqueue(chunk);
            if (++frames === 8) controller.error(new TypeError("terminated"));
          },
        });
        return new Response(response.body.pipeThrough(cut), response);
      },
    },
  });
  const frames = await all(
    client.runs.stream("t1", "assistant", { input: said("go"), streamMode: ["values", "messages-tuple"] }),
  );
  expect(cuts).toBe(2);
  expect(assembled(frames).map(({ text }) => text)).toEqual([words]);
  expect(new Set(frames.map(({ id }) => id)).size).toBe(frames.length);
  expect(asked.filter((each) => each.startsWith("POST"))).toHaveLength(1);
  expect(await direct.runs.list("t1")).toHaveLength(1);
});

test("a stream with another run's frame is refused, not started over", async () => {
  const { client } = await started([{ say: "A." }]);
  await client.runs.wait("t1", "assistant", { input: said("go"), ifNotExists: "create" });
  const [run] = await client.runs.list("t1");
  await expect(
    all(client.runs.joinStream("t1", run?.run_id ?? "", { lastEventId: "run_other:1-1.0" })),
  ).rejects.toThrow(/422/);
});
