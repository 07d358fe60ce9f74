// A server with something in each view of the page, and where the views are.

import { randomBytes } from "node:crypto";
import { createClient } from "../../src/client/client.ts";
import { startServer } from "../support/server.ts";
import { runs } from "./seen.ts";

const AGENTS = `
agents:
  assistant:
    model: "scripted:test"
    description: Works in a folder of its own
    backend: { type: local }
    permissions: { rules: [{ ask: execute }, { allow: "write_*" }, { allow: "read_*" }, { allow: ls }, { allow: browse }] }
`;

/** A thread with each kind of cell, one that waits for an answer, and one that failed. */
export async function furnished() {
  const { url } = await startServer({
    agents: AGENTS,
    config: { vault: { key: randomBytes(32).toString("base64") } },
    script: (request) => {
      const asked = JSON.stringify(request.messages.findLast(({ role }) => role === "user"));
      const step =
        request.messages.length - 1 - request.messages.findLastIndex(({ role }) => role === "user");
      if (asked.includes("Ask"))
        return { say: "May I?", call: [{ tool: "execute", args: { command: "ls -la" } }] };
      if (asked.includes("Fail")) return { say: "Well", fail: { code: "model_rejected", message: "No." } };
      if (step > 0)
        return {
          say: "# Done\n\n- one\n- [two](https://example.com)\n\n```ts\nconst a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nand[^1]\n\n| c |\n|---|\n| 3 |\n\n[^1]: A note.",
        };
      return {
        think: "What is to be done?",
        say: "First the plan.",
        usage: { input_tokens: 1000, cache_read_tokens: 500 },
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Begin", status: "in_progress" }] } },
          { tool: "write_file", args: { path: "notes/a.md", content: "# A\n" } },
          { tool: "read_file", args: { path: "nowhere.txt" } },
        ],
      };
    },
  });
  const run = await runs(url, "full", {
    input: "Do it, with everything that belongs to it, however long it takes.",
  });
  await runs(url, "asks", { input: "Ask me." });
  await runs(url, "fails", { input: "Fail." });
  const { schedules, triggers, connections } = createClient({ baseUrl: url });
  await schedules.put("briefing", {
    ...{ cron: "30 9 * * MON-FRI", timezone: "Asia/Kathmandu", input: "Summarize.", paused: true },
  });
  await triggers.put("issues", {
    ...{ agent: "assistant", verify: { scheme: "github" }, input: "Triage {{body.issue.title}}." },
  });
  await connections.put("calendar", {
    ...{ type: "static_bearer", mcp_server_url: "https://mcp.example.com/mcp", token: "t0k3n" },
  });
  return { url, run };
}

/** Where each view is, and what it shows when it has been drawn. */
export const VIEWS: Readonly<Record<string, readonly [hash: string, text: string | RegExp]>> = {
  "a new conversation": ["#/", "New conversation"],
  "a conversation": ["#/t/full", "Done"],
  "a conversation that waits": ["#/t/asks", "ls -la"],
  "a conversation that failed": ["#/t/fails", "No."],
  "the questions of a conversation": ["#/t/asks/questions", "ls -la"],
  "the todos of a conversation": ["#/t/full/todos", "Begin"],
  "the files of a conversation": ["#/t/full/files", "notes"],
  "the trace of a conversation": ["#/t/full/trace", "read_file"],
  "the events of a conversation": ["#/t/full/events", "run_start"],
  "the trace of a run": ["#/t/full/r/RUN/trace", "read_file"],
  "the events of a run": ["#/t/full/r/RUN/events", "run_start"],
  "an address that the page does not have": ["#/nowhere", "Page not found"],
  "the inbox": ["#/inbox", "ls -la"],
  "the runs": ["#/runs", "Failed"],
  "the usage": ["#/usage", "scripted:test"],
  "the agents": ["#/agents", "Works in a folder of its own"],
  "an agent": ["#/agents/assistant", "Works in a folder of its own"],
  "the users of the server": ["#/admin", "Delete"],
  "the runs of all users": ["#/admin/runs", "Failed"],
  "what waits for all users": ["#/admin/waiting", "execute"],
  "the sandboxes of all users": ["#/admin/sandboxes", "Docker sandboxes appear here"],
  "a run beside itself": ["#/compare/full/RUN/full/RUN", "Second run"],
  "the keys of a server without keys": ["#/admin/keys", "does not use API keys"],
  "the usage of all tenants": ["#/admin/usage", "Model calls"],
  "the schedules": ["#/schedules", "briefing"],
  "the triggers": ["#/schedules/triggers", "issues"],
  "the webhooks of a tenant": ["#/admin/webhooks", "Webhooks that you create appear here"],
  "the connections": ["#/tools/connections", "calendar"],
  "the connections of a tenant": ["#/admin/connections", "Accounts that you connect appear here"],
  "the tools": ["#/tools", "Tools"],
  "the settings": ["#/settings", "Settings"],
};
