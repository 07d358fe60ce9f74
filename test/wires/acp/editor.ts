// The stock client of the Agent Client Protocol, which has started the real process against a server.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  type ClientCapabilities,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  client,
  methods,
  ndJsonStream,
  type PromptRequest,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { onTestFinished } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { NODE_ENV } from "../../support/node.ts";
import { MAIN } from "../../support/program.ts";
import { startServer } from "../../support/server.ts";

export const AGENTS = `
agents:
  assistant:
    model: scripted:test
    context_window: 50000
    backend: { type: local }
    tools: [ask_user, write_todos, write_file, read_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
`;

interface EditorOptions {
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly capabilities?: ClientCapabilities;
  /** What the user selects, request by request: an option's kind or name; `stop` to stop the turn. */
  readonly selects?: readonly string[];
  readonly fills?: (request: CreateElicitationRequest) => CreateElicitationResponse;
}

/** An editor that has started `skein acp` for its user. */
export async function editor(url: string, options: EditorOptions = {}) {
  const { args = [], env = {}, capabilities = {}, selects = [], fills } = options;
  const child = spawn(process.execPath, [MAIN, "acp", "--url", url, ...args], {
    env: { ...NODE_ENV, ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output: string[] = [];
  child.stdout.on("data", (chunk) => output.push(String(chunk)));
  let log = "";
  child.stderr.on("data", (chunk) => (log += String(chunk)));
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  const app = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      const wanted = selects[asked.push(params) - 1];
      const option = params.options.find(({ kind, name }) => kind === wanted || name === wanted);
      if (wanted === undefined) return new Promise(() => {});
      return {
        outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" },
      };
    })
    .onRequest(methods.client.elicitation.create, ({ params }) => fills?.(params) ?? { action: "decline" });
  const input = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  const { agent } = app.connect(ndJsonStream(Writable.toWeb(child.stdin), input));
  const initialized = await agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: capabilities,
  });
  return {
    agent,
    child,
    initialized,
    updates,
    asked,
    log: () => log,
    output: () => output.join(""),
    /** Once all that it has written is in `output` as well. */
    ended: once(child, "close"),
    open: async () =>
      (await agent.request(methods.agent.session.new, { cwd: "/project", mcpServers: [] })).sessionId,
    say: (sessionId: string, ...prompt: (string | PromptRequest["prompt"][number])[]) =>
      agent.request(methods.agent.session.prompt, {
        sessionId,
        prompt: prompt.map((block) => (typeof block === "string" ? { type: "text", text: block } : block)),
      }),
  };
}

export async function opened(script: readonly Turn[] | Script, options: EditorOptions = {}) {
  const { url } = await startServer({ script, agents: AGENTS });
  const its = await editor(url, options);
  return { url, ...its, sessionId: await its.open() };
}

type Kind = SessionUpdate["sessionUpdate"];
export const textIn = (updates: readonly SessionUpdate[], kind: Kind) =>
  updates
    .flatMap((each) =>
      each.sessionUpdate === kind && "content" in each && each.content && "text" in each.content
        ? [each.content.text]
        : [],
    )
    .join("");
export const saidIn = (updates: readonly SessionUpdate[]) => textIn(updates, "agent_message_chunk");
export const of = <K extends Kind>(updates: readonly SessionUpdate[], kind: K) =>
  updates.filter((each): each is Extract<SessionUpdate, { sessionUpdate: K }> => each.sessionUpdate === kind);

/** The tool calls as an editor has them on its screen. */
export function calls(updates: readonly SessionUpdate[]) {
  const shown = new Map<string, Record<string, unknown>>();
  for (const update of updates) {
    if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") continue;
    const { sessionUpdate: _, toolCallId, ...rest } = update;
    shown.set(toolCallId, { ...shown.get(toolCallId), ...rest });
  }
  return [...shown.values()];
}
