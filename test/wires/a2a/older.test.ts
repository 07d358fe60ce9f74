// Agents that were built for A2A 0.2 and 0.3, in the shapes that their SDKs send and read.

import { describe, expect, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";

interface Part {
  readonly kind: string;
  readonly text?: string;
  readonly data?: object;
}
interface Message {
  readonly kind: string;
  readonly role: string;
  readonly parts: readonly Part[];
}
interface Result {
  readonly kind: string;
  readonly id: string;
  readonly taskId: string;
  readonly contextId: string;
  readonly status: { readonly state: string; readonly message?: Message };
  readonly artifact: { readonly artifactId: string; readonly parts: readonly Part[] };
  readonly artifacts: readonly { readonly parts: readonly Part[] }[];
  readonly history: readonly Message[];
  readonly append: boolean;
  readonly final: boolean;
}
interface Answer {
  readonly id: number;
  readonly result: Result;
  readonly error?: { readonly code: number; readonly message: string };
}

let count = 0;
const message = (said: string | object, more: object = {}) => ({
  ...{ kind: "message", role: "user", messageId: `old-${++count}` },
  parts: [typeof said === "string" ? { kind: "text", text: said } : said],
  ...more,
});

async function started(script: readonly Turn[] | Script) {
  const { url } = await startServer({ script, agents: AGENTS, config: { wires: ["a2a"] } });
  const post = (method: string, params: object) =>
    postJson(`${url}/a2a/assistant`, { jsonrpc: "2.0", id: 7, method, params });
  const ask = async (method: string, params: object) => (await (await post(method, params)).json()) as Answer;
  const stream = async (params: object) =>
    (await (await post("message/stream", params)).text())
      .split("\n\n")
      .flatMap((frame) => (frame.startsWith("data: ") ? [JSON.parse(frame.slice(6)) as Answer] : []))
      .map(({ result }) => result);
  return { url, ask, stream };
}

describe("an agent that speaks A2A 0.3", () => {
  test.each([
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/a2a/assistant/.well-known/agent-card.json",
    "/a2a/assistant/.well-known/agent.json",
  ])("finds its address in the card %s, next to that of 1.0", async (path) => {
    const { url } = await started([]);
    const card = (await (await fetch(url + path)).json()) as { url: string };
    expect(card).toMatchObject({
      ...{ protocolVersion: "0.3.0", preferredTransport: "JSONRPC", url: `${url}/a2a/assistant` },
      capabilities: { streaming: true },
      supportedInterfaces: [{ protocolVersion: "1.0" }, { protocolVersion: "0.3", url: card.url }],
    });
  });

  test("sends a message, reads the task with its history, and finds it again", async () => {
    const { ask } = await started([{ say: "You said {{user}}." }]);
    const { id, result } = await ask("message/send", { message: message("hello") });
    expect(id).toBe(7);
    expect(result).toMatchObject({ kind: "task", status: { state: "completed" } });
    expect(result.artifacts.map(({ parts }) => parts)).toEqual([[{ kind: "text", text: "You said hello." }]]);
    expect(result.history.map(({ kind, role }) => [kind, role])).toEqual([
      ["message", "user"],
      ["message", "agent"],
    ]);
    expect((await ask("tasks/get", { id: result.id })).result).toEqual(result);
    expect((await ask("tasks/get", { id: "none.run_1" })).error?.code).toBe(-32001);
    expect((await ask("tasks/cancel", { id: result.id })).error?.code).toBe(-32002);
  });

  test("streams an answer: the task, its pieces, and a final update", async () => {
    const { stream } = await started([{ say: "One two three." }]);
    const [task, ...updates] = await stream({ message: message("hi") });
    expect(task).toMatchObject({ kind: "task", status: { state: "submitted" } });
    const pieces = updates.filter(({ kind }) => kind === "artifact-update");
    expect(pieces.flatMap(({ artifact }) => artifact.parts.map((part) => part.text)).join("")).toBe(
      "One two three.",
    );
    expect(pieces.map(({ append }) => append)).toEqual(pieces.map((_, index) => index > 0));
    expect(updates.at(-1)).toMatchObject({
      ...{ kind: "status-update", taskId: task?.id, final: true },
      status: { state: "completed" },
    });
    expect(updates.slice(0, -1).every(({ final }) => !final)).toBe(true);
  });

  test("is asked, and answers with text", async () => {
    const { ask, stream } = await started([
      { call: [{ tool: "execute", args: { command: "echo ran" } }] },
      { say: "It ran." },
    ]);
    const { result } = await ask("message/send", { message: message("go") });
    expect(result.status).toMatchObject({
      state: "input-required",
      message: { kind: "message", role: "agent" },
    });
    expect(result.status.message?.parts.map(({ kind }) => kind)).toEqual(["text", "data"]);
    const answered = await stream({
      message: message("approve", { taskId: result.id, contextId: result.contextId }),
    });
    expect(answered.at(-1)).toMatchObject({ taskId: result.id, status: { state: "completed" }, final: true });
  });

  test("does not wait with `blocking: false`, and cancels", async () => {
    const { ask } = await started([{ say: "a ".repeat(2000), delay_ms: 20 }]);
    const { result } = await ask("message/send", {
      message: message("go"),
      configuration: { blocking: false, acceptedOutputModes: ["text/plain"] },
    });
    expect(["submitted", "working"]).toContain(result.status.state);
    expect((await ask("tasks/cancel", { id: result.id })).result.status.state).toBe("canceled");
  });

  test("sends files and data, and gets a refusal for URLs", async () => {
    let seen: unknown;
    const { ask } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "Seen." };
    });
    const file = { bytes: Buffer.from("hi").toString("base64"), mimeType: "text/plain", name: "a.txt" };
    await ask("message/send", {
      message: message(
        { kind: "file", file },
        {
          parts: [
            { kind: "file", file },
            { kind: "data", data: { a: 1 } },
          ],
        },
      ),
    });
    expect(seen).toEqual([
      { type: "file", media_type: "text/plain", data: file.bytes, name: "a.txt" },
      { type: "text", text: '{"a":1}' },
    ]);
    const url = { kind: "file", file: { uri: "https://example.com/a.png" } };
    expect((await ask("message/send", { message: message(url) })).error?.code).toBe(-32005);
  });

  test.each([
    ["push notifications", "tasks/pushNotificationConfig/set", {}, -32003],
    [
      "what is sent to be pushed",
      "message/send",
      { message: message("hi"), configuration: { pushNotificationConfig: { url: "https://x" } } },
      -32003,
    ],
    ["an extended card", "agent/getAuthenticatedExtendedCard", {}, -32004],
    ["a message without parts", "message/send", { message: { messageId: "m" } }, -32602],
    ["a method of neither", "message/other", {}, -32009],
  ])("is refused %s with the code of its version", async (_, method, params, code) => {
    const { ask } = await started([]);
    expect((await ask(method, params)).error?.code).toBe(code);
  });
});
