// Structured output, as clients meet it: asked for with a run or by an agent, checked, corrected, and found on the run.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import type { FinishedRun } from "../../src/client/wire.ts";
import { rawCall, say } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { startServer, temporaryFolder } from "../support/server.ts";

const schema = {
  type: "object",
  properties: { city: { type: "string" }, people: { type: "integer", minimum: 1 } },
  required: ["city", "people"],
};
const good = { city: "Brno", people: 400_000 };
const GOOD = JSON.stringify(good);

interface CompletionChunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}
interface OpenAiResponse {
  readonly status: string;
  readonly output: readonly { readonly content: readonly { readonly text: string }[] }[];
}
interface Refusal {
  readonly detail: string;
}
interface OpenAiRefusal {
  readonly error: { readonly code: string };
}

/** `Reply` is what the route answers; whether it does is for the expectations to say. */
async function post<Reply = FinishedRun>(url: string, path: string, body: object) {
  const reply = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  return { status: reply.status, json: (await reply.json()) as Reply };
}

const get = async (url: string, path: string): Promise<unknown> => (await fetch(url + path)).json();

async function serve(script: readonly Turn[], options: object = {}) {
  const { url } = await startServer({ script, ...options });
  return {
    url,
    run: <Reply = FinishedRun>(body: object = {}, thread = "t") =>
      post<Reply>(url, `/threads/${thread}/runs`, { input: "Which?", output_schema: schema, ...body }),
  };
}

describe("a run with an output_schema", () => {
  test("has its answer as `output`: in the response, in `done` and whenever the run is read", async () => {
    const { url, run } = await serve([{ say: GOOD }]);
    const { json } = await run();
    expect(json).toMatchObject({ status: "success", output: good });
    expect(await get(url, `/threads/t/runs/${json.id}`)).toMatchObject({ output: good });
    const events = await (await fetch(`${url}/threads/t/runs/${json.id}/events?after=0`)).text();
    expect(events).toContain(`"output":${GOOD}`);
  });

  test("tells the model the error in its answer, and accepts a better one", async () => {
    const { run } = await serve([{ say: "Brno!" }, { say: '{"city":"Brno","people":0}' }, { say: GOOD }]);
    const { json } = await run();
    expect(json).toMatchObject({ status: "success", output: good });
    const corrections = json.messages.filter(({ role }) => role === "user").slice(1);
    expect(corrections[0]?.content).toContain("It is not a single JSON object.");
    expect(corrections[1]?.content).toContain("`people` must be >= 1");
    expect(corrections[1]?.content).toContain('"minimum":1');
  });

  test.each(["```json", "```"])("accepts an answer between %s and ```", async (fence) => {
    const { run } = await serve([{ say: `${fence}\n${GOOD}\n\`\`\`\n` }]);
    expect((await run()).json).toMatchObject({ status: "success", output: good });
  });

  test("fails with output_invalid after three wrong answers", async () => {
    const { run } = await serve(["a", "b", "c", GOOD].map((say) => ({ say })));
    const { json } = await run();
    expect(json).toMatchObject({ status: "error", error: { code: "output_invalid" } });
    expect(json.error?.message).toContain("output_schema");
    expect(json.output).toBeUndefined();
    expect(json.messages.filter(({ role }) => role === "assistant")).toHaveLength(3);
  });

  test("keeps the schema while it waits for an answer and across a restart", async () => {
    const tools = [{ name: "pick", description: "Picks.", parameters: { type: "object" } }];
    const script = [{ call: [{ tool: "pick", args: {}, id: "c1" }] }, { say: "Brno" }, { say: GOOD }];
    const dir = await temporaryFolder();
    const config = { store: "sqlite" };
    const before = await startServer({ script, dir, config });
    const asked = await post(before.url, "/threads/t/runs", { input: "Pick.", output_schema: schema, tools });
    expect(asked.json.status).toBe("interrupted");
    await before.app.close();
    const { url } = await startServer({ script: script.slice(1), dir, config });
    const answers = [{ id: "tool_c1", decision: "respond", message: "Brno" }];
    const { json } = await post(url, `/threads/t/runs/${asked.json.id}/resume`, { answers });
    expect(json).toMatchObject({ status: "success", output: good });
  });

  test("does not affect the thread's next run", async () => {
    const { run } = await serve([{ say: GOOD }, { say: "Brno" }]);
    await run();
    const { json } = await run({ output_schema: undefined });
    expect(json.status).toBe("success");
    expect(json.output).toBeUndefined();
  });

  test.each<[string, object]>([
    ['needs `"type": "object"`', { type: "array" }],
    ["is not valid JSON Schema", { type: "object", properties: 5 }],
    ["refers to `#/$defs/x`", { type: "object", properties: { a: { $ref: "#/$defs/x" } } }],
    ["is nested more than", JSON.parse(`${'{"type":"object","not":'.repeat(40)}{}${"}".repeat(40)}`)],
  ])("is refused if the schema %s", async (words, output_schema) => {
    const { run } = await serve([{ say: "ok" }]);
    const { status, json } = await run<Refusal>({ output_schema });
    expect(status).toBe(400);
    expect(json).toMatchObject({ code: "invalid_request" });
    expect(json.detail).toContain("output_schema");
    expect(json.detail).toContain(words);
  });
});

describe("an agent with an output_schema", () => {
  const agents = `
agents:
  assistant:
    model: scripted:test
    output_schema: ${JSON.stringify(schema)}
`;

  test("answers every run by it, but a run's own takes precedence", async () => {
    const { run } = await serve(
      [GOOD, GOOD, GOOD, GOOD].map((say) => ({ say })),
      { agents },
    );
    expect((await run({ output_schema: undefined })).json.output).toEqual(good);
    const own = { type: "object", properties: { city: { const: "Praha" } } };
    expect((await run({ output_schema: own }, "u")).json.error?.code).toBe("output_invalid");
  });

  test("prevents the server from starting with an invalid schema, and the error has its location", async () => {
    const wrong = agents.replace('"type":"object"', '"type":"array"');
    await expect(startServer({ agents: wrong })).rejects.toThrow(/output_schema.*needs `"type": "object"`/s);
  });
});

describe("clients of OpenAI's API", () => {
  const format = { name: "city", schema, strict: true };

  test("stream only an answer that matches", async () => {
    const { url } = await serve([{ say: "Brno" }, { say: GOOD }]);
    const reply = await fetch(`${url}/v1/chat/completions`, {
      ...{ method: "POST", headers: { "content-type": "application/json" } },
      body: JSON.stringify({
        ...{ model: "assistant", stream: true, messages: [{ role: "user", content: "Which?" }] },
        response_format: { type: "json_schema", json_schema: format },
      }),
    });
    const chunks = [...(await reply.text()).matchAll(/^data: (\{.*)$/gm)].map(
      ([, data = ""]) => JSON.parse(data) as CompletionChunk,
    );
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
    expect(JSON.parse(text)).toEqual(good);
  });

  test("can request it from responses with text.format", async () => {
    const { url } = await serve([{ say: GOOD }]);
    const { json } = await post<OpenAiResponse>(url, "/v1/responses", {
      ...{ model: "assistant", input: "Which?" },
      text: { format: { type: "json_schema", ...format } },
    });
    expect(json.status).toBe("completed");
    expect(JSON.parse(json.output.at(-1)?.content[0]?.text ?? "")).toEqual(good);
  });

  test("get an error if the agent gives no answer that matches", async () => {
    const { url } = await serve(["no", "no", "no"].map((say) => ({ say })));
    const { status, json } = await post<OpenAiRefusal>(url, "/v1/chat/completions", {
      ...{ model: "assistant", messages: [{ role: "user", content: "Which?" }] },
      response_format: { type: "json_schema", json_schema: format },
    });
    expect(status).toBe(500);
    expect(json.error.code).toBe("output_invalid");
  });
});

test("a fallback follows the schema in its own provider's way", async () => {
  const fake = await startFakeProvider();
  onTestFinished(() => fake.close());
  const agents = `
agents:
  assistant:
    hooks: { retry: { attempts: 1 } }
    model:
      provider: azure
      model: gpt-5
      base_url: ${fake.url}
      api_key: k
      fallback: [{ provider: anthropic, model: claude-3-7-sonnet-20250219, base_url: "${fake.url}", api_key: k }]
`;
  const { run } = await serve([], { realModels: true, agents });
  fake.enqueue({ fail: "overloaded" }, { blocks: [rawCall("final_answer", GOOD)] });
  expect((await run()).json).toMatchObject({ status: "success", output: good });
  const [first, second] = fake.requests();
  expect(sentBody(first).response_format?.json_schema.schema.required).toEqual(["city", "people"]);
  expect(second?.body).toMatchObject({ tool_choice: { type: "any" } });
  fake.enqueue({ blocks: [say(GOOD)] });
  expect((await run({}, "u")).json.output).toEqual(good);
});
