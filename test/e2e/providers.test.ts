import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { call, say } from "../support/fake-provider/script.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(async () => {
  // A strict provider never saw a history that it refuses.
  expect(provider.requests().filter(({ status }) => status === 400)).toEqual([]);
  await provider.close();
});

const WIRES = [
  { name: "anthropic", model: "claude-sonnet-4-5", path: "" },
  { name: "openai", model: "gpt-5-mini", path: "/v1" },
];

async function start({ name, model, path }: (typeof WIRES)[number], more = "") {
  const agents = `
agents:
  assistant:
    model: { provider: ${name}, model: ${model}, base_url: "${provider.url}${path}", api_key: sk-secret-123${more} }
    backend: { type: local }
    hooks: { retry: { base_ms: 1 } }
`;
  const { url } = await startServer({ agents, realModels: true });
  const talk = (input: string, thread = "t1") => post(`${url}/threads/${thread}/runs`, { input });
  return { url, talk };
}

async function endOf(viewer: Awaited<ReturnType<typeof post>>): Promise<StreamEvent[]> {
  const events = await viewer.ended();
  expect(checkGrammar(events)).toEqual([]);
  return events;
}

describe.each(WIRES)("a run on the wire of $name", (wire) => {
  test("plans, calls tools in parallel, and answers with their output", async () => {
    const { talk } = await start(wire);
    provider.enqueue(
      {
        blocks: [
          say("Let me see."),
          call("write_file", { path: "a.txt", content: "alpha" }),
          call("execute", { command: "echo beta" }),
        ],
        interleaved: true,
      },
      { blocks: [call("read_file", { path: "a.txt" })] },
      { blocks: [say("alpha and beta")] },
    );
    const events = await endOf(await talk("go"));
    expect(textSeen(events)).toBe("Let me see.alpha and beta");
    expect(dataOf(events, "on_tool_end").map(({ error }) => error)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(JSON.stringify(provider.requests().at(-1)?.body)).toContain("beta");
  });

  test("cancelling closes the provider's socket, and the next turn is accepted", async () => {
    const { url, talk } = await start(wire);
    provider.enqueue({ blocks: [say("word ".repeat(5000))], delayMs: 5 });
    const viewer = await talk("tell me a long story");
    await viewer.until((event) => event.event === "on_chat_model_stream");
    const { hungUp } = await provider.request(0);
    await fetch(url + viewer.headers.get("location")?.replace("/events", "/cancel"), { method: "POST" });
    await hungUp;
    expect(dataOf(await endOf(viewer), "done")[0]?.status).toBe("cancelled");
    expect(textSeen(await endOf(await talk("and now?")))).toBe("ok");
  });

  test("cancelling during a command leaves a history that the provider accepts", async () => {
    const { url, talk } = await start(wire);
    provider.enqueue({
      blocks: [
        call("execute", { command: "echo begun; sleep 60" }),
        call("execute", { command: "echo quick" }),
      ],
    });
    const viewer = await talk("go");
    await viewer.until((event) => event.event === "on_tool_progress" && event.data.output.includes("begun"));
    await fetch(url + viewer.headers.get("location")?.replace("/events", "/cancel"), { method: "POST" });
    expect(dataOf(await endOf(viewer), "done")[0]?.status).toBe("cancelled");
    expect(textSeen(await endOf(await talk("and now?")))).toBe("ok");
    expect(JSON.stringify(provider.requests().at(-1)?.body)).toContain("begun");
  });

  test("a rate limit is waited for, a broken stream is retried, and the viewer is notified", async () => {
    const { talk } = await start(wire);
    provider.enqueue(
      { fail: "rate_limit", headers: { "retry-after-ms": "1" } },
      { blocks: [say("half of an answer")], breakAfter: { frames: 4, with: "destroy" } },
      { blocks: [say("the whole answer")] },
    );
    const events = await endOf(await talk("go"));
    expect(dataOf(events, "warning").map(({ code }) => code)).toEqual(["model_retry", "model_retry"]);
    expect(dataOf(events, "on_chat_model_end").map(({ error }) => error?.code)).toEqual([
      "model_rate_limited",
      "model_unreachable",
      undefined,
    ]);
    expect(dataOf(events, "on_message").at(-1)?.message.content).toBe("the whole answer");
  });

  test("a wrong key ends the run with a helpful message that does not contain the key", async () => {
    const { talk } = await start(wire);
    provider.enqueue({ fail: "auth" });
    const events = await endOf(await talk("go"));
    expect(dataOf(events, "error")[0]?.code).toBe("model_auth");
    expect(JSON.stringify(events)).not.toContain("sk-secret-123");
  });
});

test("a fallback model of another provider continues the same thread", async () => {
  const agents = `
agents:
  assistant:
    model:
      provider: anthropic
      model: claude-sonnet-4-5
      base_url: "${provider.url}"
      api_key: a
      fallback: [{ provider: openai, model: gpt-5-mini, base_url: "${provider.url}/v1", api_key: b }]
    backend: { type: local }
    hooks: { retry: { attempts: 2, base_ms: 1 } }
`;
  const { url } = await startServer({ agents, realModels: true });
  provider.enqueue(
    { blocks: [call("ls", { path: "." })] },
    { fail: "overloaded" },
    { fail: "overloaded" },
    { blocks: [say("Here instead.")] },
  );
  const events = await endOf(await post(`${url}/threads/t1/runs`, { input: "go" }));
  expect(textSeen(events)).toBe("Here instead.");
  expect(provider.requests().map(({ vendor }) => vendor)).toEqual([
    "anthropic",
    "anthropic",
    "anthropic",
    "openai",
  ]);
});
