// A child that waits for a result from outside, and what may happen to it meanwhile.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, interrupted } from "../../src/core/tool.ts";
import { dataOf } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { cast, delegating, own, results, TEAM, wellFormed } from "../support/team.ts";

/** A family whose child waits for what never comes. */
async function waiting() {
  const later = defineTool({
    name: "later",
    description: "",
    parameters: z.object({}),
    execute: async () => interrupted(),
  });
  const { url } = await startServer({
    tools: [later],
    agents: TEAM.replace(
      "description: Writes",
      "tools: [later], permissions: { mode: bypass }, description: Writes",
    ),
    script: cast({
      lead: [delegating({ agent: "coder", task: "Ask them" }), { say: "ok" }],
      coder: [{ call: [{ tool: "later" }] }],
    }),
  });
  const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
  const { event } = await viewer.until(({ event }) => event === "on_subagent_start");
  await viewer.until(({ event }) => event === "on_subagent_end");
  const thread = event.event === "on_subagent_start" ? event.data.thread_id : "";
  return { url, viewer, thread };
}

describe("a parent whose child waits for a result from outside", () => {
  test.each([
    ["deleted", (url: string) => url],
    ["cleared", (url: string) => `${url}/messages`],
  ])("continues when the child's thread is %s", async (how, pathOf) => {
    const { url, viewer, thread } = await waiting();
    await fetch(pathOf(`${url}/threads/${thread}`), { method: "DELETE" });
    expect(results(await wellFormed(viewer))).toEqual([
      `[coder-ask-1] agent coder: failed\nIts thread was ${how}.`,
    ]);
  });

  test("is stopped after its step together with the child, and has not failed", async () => {
    const { url, viewer } = await waiting();
    const headers = { "content-type": "application/json" };
    const location = viewer.headers.get("location")?.replace(/\/events$/, "");
    const body = JSON.stringify({ mode: "interrupt" });
    await fetch(`${url}${location}/cancel`, { method: "POST", headers, body });
    const events = await wellFormed(viewer);
    expect(results(events)).toEqual([
      "[coder-ask-1] agent coder: cancelled\nStopped before it had finished.",
    ]);
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "interrupted", stop_reason: "interrupt" }]);
  });
});
