// AG-UI's own client, `HttpAgent`, in its current version and the one that CopilotKit brings.

import { type AgentSubscriber, HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import { HttpAgent as OldHttpAgent } from "ag-ui-client-0";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { type ServerOptions, startServer } from "../../support/server.ts";
import { FILE_AGENTS } from "../agents.ts";

export interface PageOptions {
  readonly threadId?: string;
  readonly route?: "run" | "connect";
  readonly headers?: Record<string, string>;
}

/** What the two versions have in common, as the current one declares it. */
export type Agent = Pick<
  HttpAgent,
  | "messages"
  | "state"
  | "pendingInterrupts"
  | "addMessage"
  | "setMessages"
  | "runAgent"
  | "abortRun"
  | "threadId"
>;

/** They differ in what they send and read. */
export const VERSIONS = [
  ["1.0.0", HttpAgent],
  ["0.0.59", OldHttpAgent as unknown as typeof HttpAgent],
] as const;

export const newAgent = (
  Client: typeof HttpAgent,
  url: string,
  { threadId = "t1", route = "run", headers = {} }: PageOptions = {},
): Agent => new Client({ url: `${url}/ag-ui/agent/assistant/${route}`, threadId, headers });

export async function started(
  Client: typeof HttpAgent,
  script: readonly Turn[] | Script,
  options: ServerOptions = {},
) {
  const server = await startServer({ script, agents: FILE_AGENTS, ...options });
  return { ...server, agent: newAgent(Client, server.url) };
}

export async function say(
  agent: Agent,
  content: string,
  parameters?: RunAgentParameters,
  seen?: AgentSubscriber,
) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  return agent.runAgent(parameters, seen);
}

/** A page that opens the thread again. */
export async function reopened(Client: typeof HttpAgent, url: string): Promise<Agent> {
  const page = newAgent(Client, url, { route: "connect" });
  await page.runAgent();
  const agent = newAgent(Client, url);
  agent.setMessages(page.messages);
  Object.assign(agent, { state: page.state, pendingInterrupts: page.pendingInterrupts });
  return agent;
}

export const texts = ({ messages }: Agent) =>
  messages.flatMap(({ role, content }) => (typeof content === "string" ? [`${role}: ${content}`] : []));

/** What a reader sees of messages: the same when they are streamed and when they are read later. */
export const essence = ({ messages }: Agent) =>
  messages.map((message) => ({
    ...{ id: message.id, role: message.role, content: message.content },
    calls:
      message.role === "assistant"
        ? message.toolCalls?.map(({ id, function: made }) => ({ id, made }))
        : undefined,
    of: message.role === "tool" ? message.toolCallId : undefined,
  }));

export const callsOf = ({ messages }: Agent) =>
  messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));

export const answering = (agent: Agent, payload: unknown): RunAgentParameters => ({
  resume: agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })),
});
