// Who may keep the event loop: which files cut long work into ticks, and which read or write JSON at all, and why it is short there.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Bodies, readers of stores and logs, writers, long answers. */
const CUTTERS = [
  ...["lib/ticks.ts", "lib/bounded-schemas.ts", "lib/untrusted-schema/index.ts"],
  ...["engine/stores", "engine/runs/drive.ts", "engine/runs/find.ts", "engine/runs/follow.ts"],
  ...["engine/runs/rewrite.ts", "engine/runs/thread-bytes.ts", "wires/fold.ts"],
  ...[
    "server/auth/guard.ts",
    "server/http/json-body.ts",
    "server/http/long-responses.ts",
    "server/http/sse.ts",
  ],
  ...["agent/models/closed-turns.ts", "agent/models/json-list.ts", "agent/models/request-body.ts"],
  "agent/tools/http/answer.ts",
  // Each of many rules, calls and agents takes about a millisecond.
  ...["agent/hooks/permissions/index.ts", "engine/runs/offered-tools.ts", "engine/runs/subagents.ts"],
];
const TICK = /\b(?:ownTick|freeTick|sharedTick|isTickSpent)\b/;

/** Where else JSON is read or written, by the reason for which no tick of the event loop is long there. */
const SHORT_JSON: Readonly<Record<string, readonly string[]>> = {
  "it is a program's own, or a browser's": ["client", "page", "skein"],
  "it is one message or event of a page or batch": ["agent/core/stored-json.ts"],
  "it is a part of a long text": [
    ...["server/http/json-parts.ts", "server/http/validation.ts", "engine/admin/export-user.ts"],
    ...["wires/json-rpc.ts", "wires/langgraph/answers.ts", "wires/langgraph/resources/states.ts"],
    "wires/langgraph/resources/threads.ts",
  ],
  "a model, a tool or an operator's file gives it, within a limit": [
    ...["agent/agents", "agent/core", "agent/hooks", "agent/models", "agent/tools"],
    ...["sandbox", "server/telemetry"],
  ],
  "it is a key, a cursor, a setting or an error": [
    ...["lib", "protocol", "server/auth", "server/http/errors.ts", "engine/quotas", "engine/admin"],
    ...["engine/runs/subagent-places.ts", "wires/refusals.ts", "wires/mcp/protocol.ts"],
  ],
  "it is one record": [
    ...[
      "engine/runs/deliveries.ts",
      "engine/runs/sent-requests.ts",
      "engine/webhooks",
      "engine/audit",
      "engine/schedules",
      "engine/triggers",
      "engine/vault",
    ],
    ...["engine/temporary-threads/index.ts", "server/http/routes"],
  ],
  "it is one message, or a call's arguments": [
    ...["engine/runs/align.ts", "engine/runs/branches.ts", "engine/runs/given-calls.ts"],
    ...["engine/runs/trace.ts", "wires/ag-ui", "wires/ai-sdk", "wires/a2a", "wires/langgraph/resume.ts"],
    ...["wires/langgraph/protocol", "wires/langgraph/table.ts", "wires/mcp", "wires/openai"],
  ],
};
const JSON_CALL = /\bJSON\.(?:parse|stringify)\(/;

type Sources = Readonly<Record<string, string>>;
const SRC: Sources = Object.fromEntries(
  globSync("**/*.{ts,tsx}", { cwd: "src" }).map((file) => [file, readFileSync(`src/${file}`, "utf8")]),
);

const lies = (file: string, places: readonly string[]) =>
  places.some((place) => file === place || file.startsWith(`${place}/`));

/** The files outside `places` that match, and the places where no file does. */
function strays(sources: Sources, pattern: RegExp, places: readonly string[]): string[] {
  const found = Object.keys(sources).filter((file) => pattern.test(sources[file] ?? ""));
  const empty = places.filter((place) => !found.some((file) => lies(file, [place])));
  return [...found.filter((file) => !lies(file, places)), ...empty];
}

test("only bodies, readers, writers and long answers take ticks of the event loop", () =>
  expect(strays(SRC, TICK, CUTTERS)).toEqual([]));

test("JSON is read and written only where long work is divided or the text is short", () => {
  const places = Object.values(SHORT_JSON).flat();
  const others = Object.fromEntries(Object.entries(SRC).filter(([file]) => !lies(file, CUTTERS)));
  expect(strays(others, JSON_CALL, places)).toEqual([]);
});

test("a stray file and a missing one are found", () => {
  const sources = { "lib/a.ts": "await ownTick()", "wires/b.ts": "sharedTick(tenant)", "lib/c.ts": "" };
  expect(strays(sources, TICK, ["lib", "page"])).toEqual(["wires/b.ts", "page"]);
});
