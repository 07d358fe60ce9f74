// Budgets against a provider that charges for what it was asked for: runs at once, limits of every kind, answers that
// end early.

import { describe, expect, onTestFinished, test } from "vitest";
import type { EventData, StreamEvent } from "../../src/protocol/event.ts";
import { type Block, rawCall, say, think, timeline } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";
import { type Script, startFakeProvider } from "../support/fake-provider/server.ts";
import { requestsTo } from "../support/native.ts";
import { startServer } from "../support/server.ts";
import { post, view } from "../support/sse.ts";

const PRICES = { "*": { input: 1, output: 10 } };

/** Answers with as many tokens as it was asked for, and at most with 30,000. */
const verbose: Script = (request) => {
  const body = sentBody(request);
  const limit = body.max_tokens ?? body.max_completion_tokens ?? Number.POSITIVE_INFINITY;
  return { blocks: [say("ok")], usage: { input: 100, output: Math.min(limit, 30_000) } };
};

interface World {
  readonly quotas: object;
  readonly script?: Script;
}

async function serve({ quotas, script = verbose }: World) {
  const provider = await startFakeProvider({ script });
  onTestFinished(() => provider.close());
  const server = await startServer({
    realModels: true,
    agents: `
defaults: { hooks: { retry: { attempts: 1 } } }
agents:
  helper: { model: { provider: openai, model: gpt-x, base_url: "${provider.url}/v1", api_key: k } }
  brief: { model: { provider: openai, model: gpt-x, base_url: "${provider.url}/v1", api_key: k, max_tokens: 700 } }
  claude: { model: { provider: anthropic, model: claude-sonnet-4-5, base_url: "${provider.url}", api_key: k, thinking: 4096 } }`,
    config: { quotas },
  });
  const send = requestsTo(server.url, { accept: "application/json" });
  return {
    provider,
    usage: async (): Promise<Report> => (await send("GET", "/usage")).body,
    run: async (thread: string, more: object = {}): Promise<Ended> =>
      (await send("POST", `/threads/${thread}/runs`, { input: "go", ...more })).body,
    follow: (more: object = {}) => post(`${server.url}/threads/t/runs`, { input: "go", ...more }),
    watch: (run: string) => view(`${server.url}/threads/t/runs/${run}/events`),
    cancel: (run: string) => send("POST", `/threads/t/runs/${run}/cancel`),
  };
}

interface Report {
  readonly items: readonly { calls: number; input_tokens: number; output_tokens: number }[];
  readonly limits: readonly { most: number; used: number }[];
}
interface Ended {
  readonly status?: string;
  readonly stop_reason?: string;
  readonly code?: string;
}

const endOf = ({ code, status, stop_reason }: Ended) => code ?? (status === "error" ? stop_reason : status);

test.each([
  ["tokens", { user: { tokens_per_day: 100_000 } }],
  ["money", { tenant: { cost_per_month: 1 }, prices: PRICES }],
])("a hundred simultaneous runs do not exceed a budget of %s", async (_, quotas) => {
  const { provider, run, usage } = await serve({ quotas });
  const runs = await Promise.all(
    Array.from({ length: 100 }, (_, n) => run(`t${n}`, n % 2 ? { max_tokens: 30_000 } : {})),
  );
  const [limit] = (await usage()).limits;
  expect(limit?.used).toBeLessThanOrEqual(Number(limit?.most));
  expect(limit?.used).toBeGreaterThan(0.9 * Number(limit?.most));
  expect(provider.requests().every(({ status }) => status === 200)).toBe(true);
  const ends = runs.map(endOf);
  expect(ends.filter((end) => end === "success")).toHaveLength(provider.requests().length);
  expect(ends.filter((end) => end !== "success" && end !== "quota" && end !== "limit_exceeded")).toEqual([]);
});

describe("the limit sent to a provider", () => {
  const sent = async (budget: number | undefined, more: object) => {
    const quotas = budget ? { user: { tokens_per_day: budget } } : {};
    const { provider, run } = await serve({ quotas });
    const end = endOf(await run("t", more));
    return { end, requests: provider.requests() };
  };

  test.each([
    ["the agent's", { agent: "brief" }, 700],
    ["the run's, before the agent's", { agent: "brief", max_tokens: 900 }, 900],
    ["a default, where nothing is configured", { agent: "helper" }, 8192],
    ["with the run's thinking on top", { agent: "helper", thinking: 2048 }, 10_240],
    ["with the agent's thinking on top", { agent: "claude" }, 12_288],
  ])("is %s", async (_, more, expected) => {
    const { requests } = await sent(1_000_000, more);
    expect(sentBody(requests[0]).max_tokens).toBe(expected);
  });

  test("is the remaining budget, if that is lower, and thinking fits into it", async () => {
    const { end, requests } = await sent(6000, { agent: "claude" });
    expect(end).toBe("success");
    const { max_tokens = 0, thinking } = sentBody(requests[0]);
    expect(max_tokens).toBeLessThan(6000);
    expect(max_tokens).toBeGreaterThan(4000);
    expect(thinking?.budget_tokens).toBeLessThan(max_tokens - 1000);
  });

  test("makes no call if the rest is too small", async () => {
    const { end, requests } = await sent(300, { agent: "helper" });
    expect([end, requests]).toEqual(["quota", []]);
  });

  test("is the provider's own without budgets", async () => {
    const { requests } = await sent(undefined, { agent: "helper" });
    const body = sentBody(requests[0]);
    expect("max_tokens" in body || "max_completion_tokens" in body).toBe(false);
  });
});

describe("an answer that ends early", () => {
  const WORDS = 4000;
  const text = "token ".repeat(WORDS);
  const blocks = { text: say(text), thinking: think(text), arguments: rawCall("write", text) };
  /** All of the answer but its end. */
  const unfinished =
    (block: Block, how: "silence" | "destroy"): Script =>
    (request) => {
      const answer = { blocks: [block], batch: 500, usage: { input: 5000, output: 1 } };
      const frames = request.vendor === "openai" ? 3 : 2;
      return { ...answer, breakAfter: { frames: timeline(answer).length - frames, with: how } };
    };
  /** Starts a run and reads its answer to the end of what comes. */
  const heard = async (block: Block, more: object = {}, how: "silence" | "destroy" = "silence") => {
    const world = await serve({ quotas: {}, script: unfinished(block, how) });
    const viewer = await world.follow({ max_tokens: 100_000, ...more });
    let read = 0;
    const known = new WeakSet<StreamEvent>();
    const all = await viewer.until((event) => {
      if (event.event === "on_chat_model_stream" && !known.has(event)) read += textOfDelta(event.data).length;
      known.add(event);
      return read >= text.length - 20 || event.event === "error";
    });
    const start = viewer.seen.find(({ event }) => event.event === "run_start")?.event;
    const run = String(start && "run_id" in start && start.run_id);
    return { ...world, viewer, run, last: all.event };
  };
  const counted = async ({ usage }: { usage(): Promise<Report> }) => (await usage()).items[0];

  test.each(Object.entries(blocks))("counts its received %s if it is cancelled", async (_, block) => {
    const world = await heard(block);
    await world.cancel(world.run);
    await world.viewer.ended();
    const usage = await counted(world);
    expect(usage?.output_tokens).toBeGreaterThanOrEqual(WORDS);
    expect(usage?.calls).toBe(1);
  });

  test("counts the same if its reader leaves and cancels the run", async () => {
    const world = await heard(blocks.text, { on_disconnect: "cancel" });
    world.viewer.leave();
    await (await world.watch(world.run)).ended();
    expect((await counted(world))?.output_tokens).toBeGreaterThanOrEqual(WORDS);
  });

  test("counts the same if the provider breaks it off", async () => {
    const world = await heard(blocks.text, {}, "destroy");
    await world.viewer.ended();
    expect((await counted(world))?.output_tokens).toBeGreaterThanOrEqual(WORDS);
  });

  test("counts the input as the provider reports it, or as estimated", async () => {
    for (const [agent, least, most] of [
      ["claude", 5000, 5000],
      ["helper", 1, 2000],
    ] as const) {
      const world = await heard(blocks.text, { agent });
      await world.cancel(world.run);
      await world.viewer.ended();
      const input = (await counted(world))?.input_tokens;
      expect(input).toBeGreaterThanOrEqual(least);
      expect(input).toBeLessThanOrEqual(most);
    }
  });

  test("counts as nothing if the provider refuses it at the beginning", async () => {
    const { run, usage } = await serve({
      quotas: {},
      script: () => ({ breakAfter: { frames: 0, with: "overloaded" } }),
    });
    expect(await run("t")).toMatchObject({ status: "error" });
    expect((await usage()).items).toEqual([]);
  });

  test("includes the silence before it, up to the reservation", async () => {
    const world = await serve({ quotas: {}, script: () => ({ hang: true }) });
    const viewer = await world.follow({ max_tokens: 3 });
    await world.provider.request(0);
    const { event } = await viewer.until(({ event }) => event === "on_chat_model_start");
    await world.cancel(String("run_id" in event && event.run_id));
    await viewer.ended();
    const usage = await counted(world);
    expect(usage?.input_tokens).toBeGreaterThan(0);
    expect([1, 2, 3]).toContain(usage?.output_tokens);
  });
});

type Delta = EventData<"on_chat_model_stream">;
function textOfDelta(data: Delta): string {
  if ("delta" in data) return data.delta;
  return "reasoning_delta" in data ? data.reasoning_delta : data.tool_call.args_delta;
}
