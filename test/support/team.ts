// Agents that give tasks to each other, played from one script for all of them.

import { expect } from "vitest";
import { textOf, toolMessages } from "../../src/agent/core/message.ts";
import type { ModelRequest } from "../../src/agent/core/model.ts";
import type { Script, Turn } from "../../src/agent/models/scripted.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { dataOf } from "./drain.ts";
import { type ServerOptions, startServer } from "./server.ts";
import { post, type Viewer } from "./sse.ts";

export const TEAM = `
agents:
  lead: { model: "scripted:test", system_prompt: I am lead, subagents: [coder, tester] }
  coder: { model: "scripted:test", system_prompt: I am coder, description: Writes code }
  tester: { model: "scripted:test", system_prompt: I am tester, description: Tests code }
`;

type Part = readonly Turn[] | ((request: ModelRequest, turn: number) => Turn | undefined);

/** Each agent by its name, which its prompt says. Where it is in its part is read off its thread. */
export function cast(parts: Record<string, Part>): Script {
  return (request) => {
    const part = parts[speaker(request)];
    const turn = request.messages.filter(({ role }) => role === "assistant").length;
    return typeof part === "function" ? part(request, turn) : part?.[turn];
  };
}

export const speaker = ({ system }: ModelRequest) =>
  /I am (\w+)/.exec(system.map(({ text }) => text).join("\n"))?.[1] ?? "";

export const delegating = (...tasks: object[]): Turn => ({
  call: [{ tool: "delegate", args: { tasks: tasks.map((each) => ({ context: "none", ...each })) } }],
});

export const completing = (summary: string, more: object = {}): Turn => ({
  call: [{ tool: "task_complete", args: { status: "completed", summary, ...more } }],
});

/** An agent that asks another one, says what that found, and is known to stock front ends as `assistant`. */
export const HELPED: { agents: string; script: Script } = {
  agents: `
agents:
  assistant: { model: scripted:test, backend: { type: local }, subagents: [helper] }
  helper: { description: Helps., model: scripted:test, backend: { type: local } }
`,
  script: ({ messages, tools }) => {
    if (tools.some(({ name }) => name === "task_complete"))
      return { say: "Looking.", ...completing("It is red.") };
    const args = { agent: "helper", task: "Which colour?", context: "-" };
    return messages.at(-1)?.role === "tool"
      ? { say: "Red, says the helper." }
      : { call: [{ tool: "task", id: "call_1", args }] };
  },
};

/** A run of the first agent on thread `t1`, to its end. */
export async function played(options: ServerOptions, input = "go") {
  const server = await startServer({ agents: TEAM, ...options });
  const viewer = await post(`${server.url}/threads/t1/runs`, { input });
  return { ...server, viewer, events: await wellFormed(viewer) };
}

export async function wellFormed(viewer: Viewer): Promise<StreamEvent[]> {
  const events = await viewer.ended();
  expect(checkGrammar(events)).toEqual([]);
  return events;
}

export const own = (events: readonly StreamEvent[]) => events.filter(({ path }) => !path);

/** The results of the first agent's calls, in order. */
export const results = (events: readonly StreamEvent[]): string[] =>
  toolMessages(dataOf(own(events), "on_message").map(({ message }) => message)).map(
    ({ error, content }) => error ?? textOf(content),
  );

export async function json(url: string, init?: RequestInit) {
  const response = await fetch(url, init);
  return response.json() as Promise<Record<string, never>>;
}
