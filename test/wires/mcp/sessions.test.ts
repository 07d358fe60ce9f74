import { describe, expect, test } from "vitest";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { allStatuses } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { callOf, connected, cuttingFetch, EXECUTES, outcomeOf, post, run, SLOW, started } from "./client.ts";

describe("an MCP session", () => {
  test.each(["end", "break"] as const)("returns to a call whose connection is lost (%s)", async (how) => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      script: gated,
      tools: [tool],
      agents: WITH_GATE,
      config: { wires: ["mcp"] },
    });
    const { fetch: cutting, methods } = cuttingFetch(how);
    const client = await connected(url, { fetch: cutting });
    const told: number[] = [];
    const call = client.callTool(run("hi"), { onprogress: ({ progress }) => told.push(progress) });
    await entered;
    await expect.poll(() => methods.filter((method) => method === "GET").length).toBe(2);
    open();
    expect(outcomeOf(await call)).toMatchObject({ status: "success", text: "Through." });
    expect(new Set(told).size).toBe(told.length);
    expect(await allStatuses(url)).toEqual(["success"]);
  });

  test("that is left does not end the run", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      script: gated,
      tools: [tool],
      agents: WITH_GATE,
      config: { wires: ["mcp"] },
    });
    const client = await connected(url);
    const call = client.callTool(run("hi", { thread_id: "mine" })).catch(() => {});
    await entered;
    await client.close();
    await call;
    open();
    await expect.poll(() => allStatuses(url)).toEqual(["success"]);
    const found = await (await connected(url)).callTool({
      name: "get_run",
      arguments: { thread_id: "mine" },
    });
    expect(outcomeOf(found).text).toBe("Through.");
  });

  test("cancels a call that waits for its person", async () => {
    const url = await started(EXECUTES);
    const cancel = new AbortController();
    const client = await connected(url, {
      ask: () => {
        cancel.abort();
        // The person has not answered yet.
        return new Promise<never>(() => {});
      },
    });
    await expect(client.callTool(run("run it"), { signal: cancel.signal })).rejects.toThrow();
    await expect.poll(() => allStatuses(url)).toContain("cancelled");
  });

  test("cannot cancel a call of another user's session with the same name", async () => {
    const { tool, open, entered } = gate();
    const config = { wires: ["mcp"], ...BEHIND_GATEWAY };
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
    const [ada, bob] = [asUser("ada"), asUser("bob")];
    const session = `plain-${"s".repeat(22)}`;
    const call = post(url, callOf(7, run("hi")), { ...ada, "mcp-session-id": session });
    await entered;
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } };
    const before = await post(url, cancelled, { ...bob, "mcp-session-id": session });
    expect(before.status).toBe(202);
    open();
    expect(await (await call).text()).toContain("Through.");
  });

  test("starts one run for a call that is sent twice", async () => {
    const url = await started([{ say: "Once." }]);
    const headers = { "mcp-session-id": `plain-${"s".repeat(22)}` };
    for (let times = 0; times < 2; times++)
      expect(await (await post(url, callOf(1, run("hi")), headers)).text()).toContain("Once.");
    expect(await allStatuses(url)).toEqual(["success"]);
  });
});

test("a client without a session cancels the run when it leaves", async () => {
  const url = await started(SLOW);
  const leave = new AbortController();
  const call = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(callOf(1, run("go"))),
    signal: leave.signal,
  });
  expect(call.headers.get("content-type")).toContain("text/event-stream");
  leave.abort();
  await expect.poll(() => allStatuses(url)).toEqual(["cancelled"]);
});
