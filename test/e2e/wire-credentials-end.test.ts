// What a client of each wire gets whose key is revoked while it waits for a run.

import { expect, onTestFinished, test } from "vitest";
import { issueApiKey } from "../../src/server/auth/api-keys.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { WireName } from "../../src/server/config/wire-names.ts";
import { openApiKeys } from "../../src/skein/app/stores.ts";
import { startServer, temporaryFolder } from "../support/server.ts";

const user = { role: "user", content: "go" };
const langgraph = { assistant_id: "assistant", if_not_exists: "create", input: { messages: [user] } };
const a2a = (method: string) => ({
  ...{ jsonrpc: "2.0", id: 1, method },
  params: { message: { messageId: method, role: "ROLE_USER", parts: [{ text: "go" }] } },
});
const mcp = {
  ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
  params: {
    name: "run_agent",
    arguments: { agent: "assistant", message: "go" },
    _meta: { progressToken: 1 },
  },
};
const parts = [{ type: "text", text: "go" }];

/** A stream whose format has no word for it breaks off: its client must not take what came for the whole answer. */
const WAITING: readonly (readonly [path: string, body: object, end: "401" | "said" | "broken"])[] = [
  ["/threads/native/runs", { input: "go" }, "401"],
  ["/v1/chat/completions", { model: "assistant", messages: [user] }, "401"],
  ["/v1/chat/completions", { model: "assistant", messages: [user], stream: true }, "broken"],
  ["/v1/responses", { model: "assistant", input: "go" }, "401"],
  ["/v1/responses", { model: "assistant", input: "go", stream: true }, "broken"],
  ["/langgraph/threads/wait/runs/wait", langgraph, "401"],
  ["/langgraph/threads/stream/runs/stream", langgraph, "broken"],
  ["/ai-sdk/assistant/chat", { id: "chat", messages: [{ id: "m", role: "user", parts }] }, "broken"],
  ["/ag-ui/agent/assistant/run", { threadId: "t", runId: "r", messages: [{ id: "m", ...user }] }, "said"],
  ["/a2a/assistant", a2a("SendMessage"), "401"],
  ["/a2a/assistant", a2a("SendStreamingMessage"), "broken"],
  ["/mcp", mcp, "broken"],
];

test("a revoked key ends everything that waits for a run on every wire, and nothing looks complete", async () => {
  const dir = await temporaryFolder();
  const config = { data_dir: `${dir}/data`, auth: { scheme: "api_key" }, wires: WireName.options };
  let [asked, open] = [0, 0];
  const script = () => {
    asked++;
    return { say: "Never said.", delay_ms: 600_000 };
  };
  const { url } = await startServer({ dir, config, script });
  const { keys, close } = await openApiKeys(ServerConfig.parse({ store: "memory", ...config }));
  onTestFinished(() => close());
  const { key, record } = await issueApiKey(keys, {
    ...{ tenant: "acme", user: "ada", scopes: ["read", "run"], name: "" },
  });
  const ends = WAITING.map(async ([path, body]) => {
    const headers = {
      ...{ authorization: `Bearer ${key}`, "content-type": "application/json", "a2a-version": "1.0" },
      accept: path === "/mcp" ? "application/json, text/event-stream" : "*/*",
      ...(path.startsWith("/threads") ? { accept: "application/json" } : {}),
    };
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (answer.ok) open++;
    const text = await answer.text().catch(() => undefined);
    if (text === undefined) return "broken";
    return answer.status === 200 && text.includes("credentials_revoked") ? "said" : String(answer.status);
  });
  for (const end of ends) end.catch(() => {});
  await expect.poll(() => asked).toBe(WAITING.length);
  await expect.poll(() => open).toBe(WAITING.filter(([, , end]) => end !== "401").length);
  await keys.revoke(record.id);
  expect(await Promise.all(ends)).toEqual(WAITING.map(([, , end]) => end));
});
