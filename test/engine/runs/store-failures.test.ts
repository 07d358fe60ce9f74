// A store that fails between the first byte to a tool and the tool's stored result. Its words are never the result, and a result that
// was taken is read.

import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import { textOf } from "../../../src/agent/core/message.ts";
import type { Owners } from "../../../src/agent/core/owners.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { createHttpTools } from "../../../src/agent/tools/http/index.ts";
import { deliverResult, resumeThreads } from "../../../src/engine/runs/index.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { markFailures } from "../../../src/engine/stores/mark-failures.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { type Method, wrappedMethods } from "../../../src/lib/wrapped-methods.ts";
import { fetch, registered } from "../../agent/tools/http/caller.ts";
import { type Heard, httpServer, json } from "../../support/hostile.ts";
import { ADA } from "../stores/fixture.ts";
import { managed } from "./managed.ts";

const WORDS = "The store does not answer.";
const storeFails = () => Promise.reject(new AppError("unavailable", WORDS));

/** Fails once: at the call `at` of the deferred calls, before or after it has done what it does. */
function failing(at: number, when: "before" | "after") {
  const stores = createMemoryStores();
  const asked: string[] = [];
  const around = (name: string, method: Method): Method => {
    if (!["open", "get", "accept", "close", "leave"].includes(name)) return method;
    return async (...args) => {
      const isHere = asked.push(name) - 1 === at;
      if (isHere && when === "before") return storeFails();
      const result = await method(...args);
      return isHere ? storeFails() : result;
    };
  };
  const bent: AllStores = { ...stores, deferredCalls: wrappedMethods(stores.deferredCalls, around) };
  return { stores: markFailures(bent), asked };
}

const LATER = (_: Heard, response: ServerResponse) => response.writeHead(202).end();

interface Case {
  readonly name: string;
  readonly answer: (heard: Heard, response: ServerResponse) => unknown;
  /** Whether a result is delivered once the run has ended. */
  readonly isDelivered: boolean;
}

const CASES: Case[] = [
  { name: "answers at once", answer: json({ result: "four degrees" }), isDelivered: false },
  { name: "answers later", answer: LATER, isDelivered: true },
  {
    name: "answers at once and delivers another result",
    answer: json({ result: "five" }),
    isDelivered: true,
  },
];

async function called({ answer, isDelivered }: Case, at: number, when: "before" | "after") {
  const { stores, asked } = failing(at, when);
  const server = await httpServer(answer);
  const deferral = {
    store: stores.deferredCalls,
    urlOf: (token: string) => `https://skein.example/${token}`,
  };
  const tools = await createHttpTools([await registered(server.url)], { fetch, deferral });
  const script = [
    { call: [{ tool: "weather", args: { city: "Oslo" } }] },
    { say: "So." },
    { say: "So it is." },
    { say: "Thanks." },
  ];
  const { runs, start } = managed(stores, { script, tools });
  await runs.open();
  const { thread_id } = await start(ADA);
  const statusOf = async () => (await stores.threads.get(ADA, thread_id))?.status;
  await expect.poll(statusOf).not.toBe("busy");
  const inRun = asked.length;
  const token = JSON.parse(server.heard[0]?.body ?? "{}").result_url?.replace("https://skein.example/", "");
  const isTaken =
    isDelivered &&
    token !== undefined &&
    (await deliverResult(runs, tokenHash(token), { result: "four degrees" }));
  const texts = async () =>
    (await stores.threads.messages(ADA, thread_id)).map(
      (message) =>
        `${message.role}: ${(message.role === "tool" && message.error) || ""}${textOf(message.content)}`,
    );
  return { asked, inRun, texts, isTaken, runs, calls: server.heard.length };
}

describe.each(CASES)("a callback tool that $name", (each) => {
  for (const when of ["before", "after"] as const)
    test(`the model never learns of a store that fails ${when} any of its calls, and delivered results are read`, async () => {
      const { inRun } = await called(each, -1, when);
      expect(inRun).toBeGreaterThan(2);
      for (let at = 0; at < inRun; at++) {
        const { asked, texts, isTaken, runs, calls } = await called(each, at, when);
        if (isTaken) {
          await resumeThreads(runs);
          await expect
            .poll(async () => (await texts()).join("\n"), { message: `${asked[at]}` })
            .toContain("four degrees");
        }
        const all = await texts();
        expect(all.join("\n"), `${at} ${asked[at]}`).not.toContain(WORDS);
        const results = all.filter((text) => text.startsWith("tool: "));
        expect(results.length).toBeLessThanOrEqual(1);
        // A result that is in hand is kept.
        if (calls > 0 && !each.isDelivered && asked[at] === "close")
          expect(results).toEqual(["tool: four degrees"]);
      }
    });
});

test("a server's own tool has an unknown outcome if its store fails, and the run continues", async () => {
  const memory = createMemoryStores();
  const owners: Owners = { ...memory.owners, list: storeFails };
  const stores = markFailures({ ...memory, owners });
  const tool = defineTool({
    name: "count",
    description: "Counts the users.",
    parameters: z.object({}),
    execute: async () => {
      await stores.owners.list({ limit: 1 });
      return "None.";
    },
  });
  const { runs, start } = managed(stores, {
    script: [{ call: [{ tool: "count" }] }, { say: "Well." }],
    tools: [tool],
  });
  await runs.open();
  const { thread_id } = await start(ADA);
  const messages = () => stores.threads.messages(ADA, thread_id);
  await expect.poll(async () => (await messages()).at(-1)?.role).toBe("assistant");
  await expect.poll(async () => (await messages()).length).toBe(4);
  expect((await messages())[2]).toMatchObject({
    role: "tool",
    error: expect.stringMatching(/^Outcome unknown/),
  });
});
