// What the AG-UI routes answer to any client.

import { describe, expect, test } from "vitest";
import { heldAfter } from "../../support/gate.ts";
import { postJson, statusesOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { FILE_AGENTS } from "../agents.ts";

describe("the AG-UI routes", () => {
  const post = (url: string, body: unknown, path = "agent/assistant/run") =>
    postJson(`${url}/ag-ui/${path}`, body);
  const user = (content: unknown) => [{ id: "m1", role: "user", content }];

  test("refuse requests with `error` and `message`", async () => {
    const { url } = await startServer({ script: [{ say: "ok" }], agents: FILE_AGENTS });
    const base = { threadId: "t1", runId: "r1" };
    const open = await post(url, { ...base, messages: user("hi") });
    await open.text();
    const refusals = [
      [404, "not_found", await post(url, { ...base, messages: user("hi") }, "agent/unknown/run")],
      [400, "invalid_request", await post(url, { ...base, messages: [] })],
      [400, "invalid_request", await post(url, { threadId: "t1", messages: user("hi") })],
      [400, "invalid_request", await post(url, { ...base, messages: user({ text: "hi" }) })],
      [
        400,
        "invalid_request",
        await post(url, { ...base, messages: user("x"), forwardedProps: { on_disconnect: 1 } }),
      ],
      [400, "invalid_request", await post(url, { ...base, messages: user("x"), tools: [{ name: "a b" }] })],
      [
        400,
        "invalid_request",
        await post(url, {
          ...base,
          messages: [...user("hi"), { id: "a", role: "assistant", content: "ok" }],
        }),
      ],
      [
        409,
        "interrupt_closed",
        await post(url, {
          ...base,
          messages: [],
          resume: [{ interruptId: "i1", status: "resolved", payload: true }],
        }),
      ],
      [
        409,
        "interrupt_closed",
        await post(url, {
          ...base,
          messages: [...user("hi"), { role: "tool", toolCallId: "c", content: "x" }],
        }),
      ],
    ] as const;
    for (const [status, error, response] of refusals) {
      const body = (await response.json()) as { message: string };
      expect([response.status, body]).toEqual([status, { error, message: expect.any(String) }]);
      expect(body.message).not.toContain("undefined");
      if (error === "interrupt_closed") expect(body.message).toMatch(/`i1`|no open question/);
    }
  });

  test("treat a message that is sent again during its run as the same one", async () => {
    const { model, release } = heldAfter("a", [{ say: "a b c d e f" }]);
    const { url } = await startServer({ model });
    const body = { threadId: "t1", runId: "r1", messages: user("hi") };
    const responses = await Promise.all([post(url, body), post(url, body)]);
    release();
    const [first, second] = await Promise.all(responses.map((each) => each.text()));
    expect(second).toBe(first);
    expect(await statusesOf(url, "t1")).toEqual(["success"]);
  });

  test("stop an active run, and report it", async () => {
    const { url } = await startServer({
      script: [{ say: "a ".repeat(500), delay_ms: 20 }],
      agents: FILE_AGENTS,
    });
    const stop = async (thread: string) =>
      (await post(url, undefined, `agent/assistant/stop/${thread}`)).json();
    expect(await stop("t1")).toEqual({ stopped: false });
    const running = await post(url, { threadId: "t1", runId: "r1", messages: user("hi") });
    expect(await stop("t1")).toEqual({ stopped: true });
    const events = await running.text();
    expect(events).toContain("RUN_FINISHED");
    expect(events).not.toContain('"cancelled"');
    expect((await statusesOf(url, "t1"))[0]).toBe("cancelled");
  });

  test("take a tool's result once if it is sent as an answer and as a message", async () => {
    const { url } = await startServer({
      script: ({ messages }) =>
        messages.at(-1)?.role === "user" ? { call: [{ tool: "where", id: "c1" }] } : { say: "Vienna." },
      agents: FILE_AGENTS,
    });
    const tools = [{ name: "where", description: "Where.", parameters: { type: "object" } }];
    await (await post(url, { threadId: "t1", runId: "r1", messages: user("hi"), tools })).text();
    const messages = [{ id: "r", role: "tool", toolCallId: "c1", content: "Vienna" }];
    const resume = [{ interruptId: "tool_c1", status: "resolved", payload: { answer: "Vienna" } }];
    const body = await (await post(url, { threadId: "t1", runId: "r2", messages, resume, tools })).text();
    expect(body).toContain("Vienna.");
  });

  test("treat a cancelled approval as a denial", async () => {
    const { url } = await startServer({
      script: [{ call: [{ tool: "execute", args: { command: "echo hi" } }] }, { say: "As you like." }],
      agents: FILE_AGENTS,
    });
    await (await post(url, { threadId: "t1", runId: "r1", messages: user("hi") })).text();
    const resume = [{ interruptId: "approval_call_1_1", status: "cancelled" }];
    const body = await (await post(url, { threadId: "t1", runId: "r2", messages: [], resume })).text();
    expect(body).toContain("TOOL_CALL_RESULT");
    expect(body).toContain("As you like.".split(" ")[0]);
  });
});
