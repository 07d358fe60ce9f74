// Calls of the tools by MCP's own client, against the whole server.

import type { Progress } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { allStatuses, runsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { ASKS, connected, outcomeOf, run, SLOW, started, textIn } from "./client.ts";

describe.each([["legacy"], ["auto"]] as const)("an MCP client (%s)", (era) => {
  test("uses its preferred revision, and finds the tools and the agents", async () => {
    const client = await connected(await started([]), { era });
    expect(client.getNegotiatedProtocolVersion()).toBe(era === "legacy" ? "2025-11-25" : "2026-07-28");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "run_agent",
      "answer",
      "list_agents",
      "get_run",
      "cancel_run",
    ]);
    const agent = tools[0]?.inputSchema.properties?.agent;
    expect(agent).toMatchObject({ enum: ["assistant", "writer"] });
    expect((await client.callTool({ name: "list_agents" })).structuredContent).toEqual({
      agents: [{ name: "assistant", description: "Helps." }, { name: "writer" }],
    });
  });

  test("receives an agent's answer, with progress, and continues the conversation", async () => {
    const url = await started([
      { think: "Hm.", say: "Let me see.", call: [{ tool: "current_datetime", args: { time_zone: "UTC" } }] },
      { say: "You said {{user}}." },
      { say: "And then {{user}}." },
    ]);
    const client = await connected(url, { era });
    const told: Progress[] = [];
    const first = await client.callTool(run("hello", { thread_id: null }), {
      onprogress: (progress) => told.push(progress),
    });
    expect(first.isError).toBeFalsy();
    expect(outcomeOf(first)).toMatchObject({ status: "success", text: "You said hello." });
    expect(JSON.parse(textIn(first))).toEqual(first.structuredContent);
    expect(told.map(({ message }) => message)).toEqual([
      "assistant thinks",
      "assistant calls current_datetime",
      "assistant thinks",
    ]);
    expect(told.map(({ progress }) => progress)).toEqual(
      told.map(({ progress }) => progress).toSorted((a, b) => a - b),
    );
    const { thread_id } = outcomeOf(first);
    const second = await client.callTool(run("more", { thread_id }));
    expect(outcomeOf(second)).toMatchObject({ thread_id, text: "And then more." });
  });

  test("keeps waiting because of progress while an agent is silent", async () => {
    const { tool, open } = gate();
    const config = { wires: ["mcp"], streams: { heartbeat: 0.05 } };
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
    const client = await connected(url, { era });
    const told: number[] = [];
    const onprogress = ({ progress }: Progress) => {
      told.push(progress);
      if (told.length === 80) open();
    };
    const how = { timeout: 3000, resetTimeoutOnProgress: true, onprogress };
    expect(outcomeOf(await client.callTool(run("hi"), how)).text).toBe("Through.");
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(new Set(told).size).toBe(told.length);
  });

  test("that cancels a call cancels the run, and the thread accepts the next message", async () => {
    const url = await started([...SLOW, { say: "Here." }]);
    const client = await connected(url, { era });
    const cancel = new AbortController();
    const thread_id = "mine";
    const call = client.callTool(run("go", { thread_id }), {
      signal: cancel.signal,
      onprogress: () => cancel.abort(),
    });
    await expect(call).rejects.toThrow();
    await expect.poll(() => allStatuses(url)).toEqual(["cancelled"]);
    expect(outcomeOf(await client.callTool(run("again", { thread_id }))).text).toBe("Here.");
  });

  test("cancels a run that waits for an answer with a tool", async () => {
    const client = await connected(await started(ASKS), { era });
    const { thread_id } = outcomeOf(await client.callTool(run("ask me")));
    const cancelled = await client.callTool({ name: "cancel_run", arguments: { thread_id } });
    expect(outcomeOf(cancelled)).toMatchObject({ status: "cancelled" });
  });

  test("receives the provider's error instead of half an answer", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const client = await connected(await started([{ say: "Half", fail }, { say: "Well." }]), { era });
    const failed = await client.callTool(run("go"));
    expect(failed.isError).toBe(true);
    expect(JSON.parse(textIn(failed))).toEqual(failed.structuredContent);
    expect(failed.structuredContent).toMatchObject({ status: "error", text: "Half", error: fail });
    const { thread_id, run_id } = outcomeOf(failed);
    const read = await client.callTool({ name: "get_run", arguments: { thread_id } });
    expect(read.structuredContent).toMatchObject({ run_id, status: "error", error: fail });
    expect(outcomeOf(await client.callTool(run("again", { thread_id })))).toMatchObject({ text: "Well." });
  });

  test("receives the thread of a call that another client cancels", async () => {
    const url = await started(SLOW);
    const client = await connected(url, { era });
    const call = client.callTool(run("go", { thread_id: "mine" }));
    await expect.poll(async () => (await runsOf(url, "mine"))[0]?.status).toBe("running");
    await client.callTool({ name: "cancel_run", arguments: { thread_id: "mine" } });
    const cancelled = await call;
    expect(cancelled.isError).toBe(true);
    expect(cancelled.structuredContent).toMatchObject({ thread_id: "mine", status: "cancelled" });
  });

  test.each([
    ["an unknown agent", run("hi", { agent: "unknown" }), "unknown"],
    ["a call without a message", { name: "run_agent", arguments: { agent: "assistant" } }, "message"],
    ["an unknown thread", { name: "get_run", arguments: { thread_id: "none" } }, "no thread `none`"],
  ])("passes the error on to its model: %s", async (_, call, words) => {
    const client = await connected(await started([]), { era });
    const refused = await client.callTool(call);
    expect(refused.isError).toBe(true);
    expect(textIn(refused)).toContain(words);
  });

  test("gets a readable refusal for unknown tools and methods", async () => {
    const client = await connected(await started([]), { era });
    await expect(client.callTool({ name: "delete_all" })).rejects.toThrow("no tool `delete_all`");
    const unknown = client.request({ method: "tools/remove", params: {} }, z.unknown());
    await expect(unknown).rejects.toThrow("no method `tools/remove`");
  });

  test("finds nothing of another user, and cannot cancel anything of theirs", async () => {
    const url = await started(ASKS, BEHIND_GATEWAY);
    const ada = await connected(url, { era, headers: asUser("ada") });
    const bob = await connected(url, { era, headers: asUser("bob") });
    const { thread_id } = outcomeOf(await ada.callTool(run("ask me")));
    const calls = [
      { name: "get_run", arguments: { thread_id } },
      { name: "cancel_run", arguments: { thread_id } },
      { name: "answer", arguments: { thread_id, decision: "respond", message: "mine" } },
    ];
    for (const call of calls)
      expect(textIn(await bob.callTool(call))).toBe(`There is no thread \`${thread_id}\`.`);
    expect(await allStatuses(url, asUser("ada"))).toEqual(["interrupted"]);
  });
});
