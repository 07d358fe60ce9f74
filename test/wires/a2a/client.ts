// The A2A SDK's own client.

import {
  type Message,
  type Part,
  Role,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  TaskState,
} from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { asUser } from "../../support/gateway.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";

export async function started(script: readonly Turn[] | Script, config: object = {}) {
  const { url } = await startServer({ script, agents: AGENTS, config: { wires: ["a2a"], ...config } });
  return { url, client: await clientOf(url) };
}

/** A client that knows the address of the card only. */
export function clientOf(
  url: string,
  { user = "", path = "/a2a/assistant/.well-known/agent-card.json" } = {},
): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, user ? { ...init, headers: { ...(init?.headers as object), ...asUser(user) } } : init);
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
  });
  return new ClientFactory(options).createFromUrl(url, path);
}

let count = 0;
export const partOf = (content: NonNullable<Part["content"]>): Part => ({
  ...{ content, metadata: undefined, filename: "", mediaType: "" },
});
export const text = (value: string) => partOf({ $case: "text", value });

export function say(
  said: string | Part,
  more: Partial<Message> = {},
  configuration?: object,
): SendMessageRequest {
  const message: Message = {
    ...{ messageId: `m${++count}`, contextId: "", taskId: "", role: Role.ROLE_USER },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
    parts: [typeof said === "string" ? text(said) : said],
    ...more,
  };
  return {
    ...{ tenant: "", message, metadata: undefined },
    configuration: configuration as SendMessageRequest["configuration"],
  };
}

export const answer = ({ id, contextId }: Task, said: string | Part) => say(said, { taskId: id, contextId });
export const named = ({ id }: Pick<Task, "id">) => ({ tenant: "", id, metadata: undefined });
export const textOf = (parts: readonly Part[] = []) =>
  parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");
export const dataIn = (parts: readonly Part[] = []) =>
  parts.flatMap(({ content }) => (content?.$case === "data" ? [content.value] : []));
export const lastSaid = ({ artifacts }: Task) => textOf(artifacts.at(-1)?.parts);

export async function taskFrom(client: Client, request: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(request);
  if (!("artifacts" in result)) throw new Error("This is no task.");
  return result;
}

/** What a client has put together of a stream, as the standard says. */
export async function assembled(stream: AsyncIterable<StreamResponse>) {
  const artifacts = new Map<string, string>();
  const states: string[] = [];
  const tools: unknown[] = [];
  let pieces = 0;
  let task: Task | undefined;
  let last = "";
  for await (const { payload } of stream) {
    if (payload?.$case === "task") {
      task = payload.value;
      for (const { artifactId, parts } of task.artifacts) artifacts.set(artifactId, textOf(parts));
      states.push(TaskState[task.status?.state ?? 0] ?? "");
    }
    if (payload?.$case === "artifactUpdate") {
      const { artifact, append } = payload.value;
      const before = append ? artifacts.get(artifact?.artifactId ?? "") : "";
      artifacts.set(artifact?.artifactId ?? "", (before ?? "") + textOf(artifact?.parts));
      pieces++;
    }
    if (payload?.$case === "statusUpdate") {
      const { status } = payload.value;
      states.push(TaskState[status?.state ?? 0] ?? "");
      tools.push(...dataIn(status?.message?.parts));
      last = textOf(status?.message?.parts);
    }
  }
  return { task, texts: [...artifacts.values()], states, tools, pieces, last };
}

export const EXECUTES: Script = ({ messages: read }, call) => {
  if (call === 0) return { call: [{ tool: "execute", args: { command: "echo ran" } }] };
  const last = JSON.stringify(read.at(-1));
  return { say: last.includes("edited\\n") ? "It was edited." : last.includes("ran\\n") ? "It ran." : last };
};
export const ASKS: readonly Turn[] = [
  { call: [{ tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] } }] },
  { say: "{{user}}" },
];

export const listed = (query: object) => ({
  ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "" },
  ...{ statusTimestampAfter: undefined },
  ...query,
});
