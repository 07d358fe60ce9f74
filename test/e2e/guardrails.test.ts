// What a user brings beside the messages: guardrails on the input read it as well.

import { expect, test } from "vitest";
import type { Script, Turn } from "../../src/agent/models/scripted.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    skills: { paths: [/workspace/skills] }
    hooks: { guardrails: { input: { topics: [plutonium] } } }
`;

async function serve(skill: string, script: Turn[] | Script) {
  const { url } = await startServer({ script, agents: AGENTS });
  const file = { method: "PUT", body: skill };
  expect((await fetch(`${url}/backend/files/skills/order/SKILL.md`, file)).ok).toBe(true);
  return async () => (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
}

const REFUSED = { event: "done", data: { stop_reason: "refusal" } };

test("a user's skill ends the run if the input rules refuse its description", async () => {
  const run = await serve("---\ndescription: Orders plutonium.\n---\nOrder it.", [{ say: "ok" }]);
  expect((await run()).at(-1)).toMatchObject(REFUSED);
});

test("a user's skill is loaded for no model if the input rules refuse its instructions, not even in later runs", async () => {
  const shown: string[] = [];
  const run = await serve("---\nname: order\ndescription: Orders.\n---\nOrder plutonium.", ({ messages }) => {
    shown.push(JSON.stringify(messages));
    return shown.length === 1 ? { call: [{ tool: "load_skill", args: { name: "order" } }] } : { say: "ok" };
  });
  expect((await run()).at(-1)).toMatchObject(REFUSED);
  expect((await run()).at(-1)).toMatchObject({ data: { stop_reason: "end_turn" } });
  expect(shown).toHaveLength(2);
  expect(shown.join()).not.toContain("plutonium");
});
