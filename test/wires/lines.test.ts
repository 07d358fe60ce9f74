// The recipe "add a wire", followed for a protocol of lines: `+` text, `*` a tool, `?` a question, `=` the end.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { userMessage } from "../../src/agent/core/message.ts";
import { askFor } from "../../src/agent/core/open-interrupts.ts";
import type { RunRecord } from "../../src/agent/core/records.ts";
import { defineTool, done, interrupted } from "../../src/agent/core/tool.ts";
import type { Runs } from "../../src/engine/runs/executor.ts";
import { type Caller, prepareTurn } from "../../src/engine/runs/prepare-turn.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { readTurn } from "../../src/protocol/turn-reader.ts";
import { foldedFrames } from "../../src/wires/fold.ts";
import { answersInWords } from "../../src/wires/words.ts";
import { managed } from "../engine/runs/managed.ts";
import { ADA } from "../engine/stores/fixture.ts";

/** table.ts */
const lines = () =>
  readTurn<{ data: string }, RunRecord>({
    delta: (kind, text) => (kind === "text" ? [{ data: `+ ${text}` }] : []),
    toolStart: (tool) => [{ data: `* ${tool}` }],
    end: ({ as, message, questions }) => {
      if (as === "waits") return [];
      if (as === "asks") return questions.map(({ prompt }) => ({ data: `? ${prompt}` }));
      return [{ data: `= ${message || as}` }];
    },
  });

/** prepare.ts */
const prepare = (runs: Runs, caller: Caller, thread_id: string, words: string) =>
  prepareTurn(runs, caller, {
    thread_id,
    input: () => ({ messages: [userMessage(words)], place: { as: "new" } }),
    answersInWords,
  });

/** index.ts */
const route = (runs: Runs) => async (request: IncomingMessage, response: ServerResponse) => {
  const thread_id = (request.url ?? "").slice(1);
  const { start } = await prepare(runs, { owner: ADA }, thread_id, await text(request));
  const from = await start();
  const frames = foldedFrames(runs.stores, {
    ...{ owner: ADA, from, fold: lines(), unit: "turn" },
    messages: () => runs.stores.threads.messages(ADA, thread_id),
  });
  for await (const batch of frames(new AbortController().signal))
    for (const { data } of batch) response.write(`${data}\n`);
  response.end();
};

const ask = defineTool({
  name: "ask",
  description: "Asks.",
  parameters: z.object({}),
  async *execute(_args, call, run) {
    const answer = yield* askFor({ call, kind: "question", prompt: "Red or blue?" }, run);
    return answer ? done(answer.message ?? "") : interrupted();
  },
});

test("a wire that follows the recipe shows text, tools and questions, and accepts text as an answer", async () => {
  const script = [{ say: "Hm.", call: [{ tool: "ask" }] }, { say: "Blue." }, { say: "Bye." }];
  const { runs } = managed(createMemoryStores(), { tools: [ask], script });
  const server = createServer((request, response) => void route(runs)(request, response)).listen(
    0,
    "127.0.0.1",
  );
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/paint`;
  const send = async (body: string) => (await fetch(url, { method: "POST", body })).text();
  expect(await send("Paint it.")).toBe("+ Hm.\n* ask\n? Red or blue?\n");
  expect(await send("blue")).toBe("* ask\n+ Blue.\n= finished\n");
  expect(await send("Thanks.")).toBe("+ Bye.\n= finished\n");
});
